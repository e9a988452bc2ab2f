import type { Name } from "../../dns/index.ts";
import { Opcode, parseRecordType } from "../../dns/index.ts";
import { fromBase64 } from "../../dns/octets.ts";
import { nearestWord } from "../../lib/text/nearest-word.ts";
import {
  type ConfigSchema,
  directive,
  domainName,
  option,
  optionList,
  required,
  rest,
  text,
  type Value,
  ValueProblem,
  type ZoneList,
  zones,
} from "../../plugin/index.ts";

export interface TsigConfig {
  readonly zones: ZoneList;
  readonly secret: readonly { readonly name: Name; readonly key: Uint8Array }[];
  readonly secrets: readonly { readonly file: string }[];
  readonly require: Required<string | number>;
  readonly require_opcode: Required<string | number>;
}

/** Which queries must be signed: the arguments of the last line. */
type Required<T> = { readonly what: readonly T[] } | undefined;

export const ALL = "all";
export const NONE = "none";

const secret: Value<Uint8Array> = {
  expected: "a secret in base64, as tsig-keygen writes it",
  parse(word) {
    const octets = fromBase64(word);
    return octets === undefined || octets.length === 0
      ? new ValueProblem("the secret is not base64")
      : octets;
  },
};

const queryType: Value<string | number> = {
  expected: "record types such as AXFR, or all, or none",
  parse(word) {
    if (word === ALL || word === NONE) return word;
    return parseRecordType(word) ?? new ValueProblem(`'${word}' is not a record type`);
  },
};

const opcode: Value<string | number> = {
  expected: "opcodes such as NOTIFY, or all, or none",
  parse(word) {
    if (word === ALL || word === NONE) return word;
    const names = Object.keys(Opcode);
    const found = Object.entries(Opcode).find(([name]) => name === word.toUpperCase());
    return (
      found?.[1] ?? new ValueProblem(`'${word}' is not an opcode`, nearestWord(word.toUpperCase(), names))
    );
  },
};

export const tsigConfig: ConfigSchema<TsigConfig> = directive({
  args: { zones: zones() },
  options: {
    secret: optionList({ name: required(domainName()), key: required(secret) }),
    secrets: optionList({ file: required(text("a file with keys, as BIND has them")) }),
    require: option({ what: rest(queryType, 1) }),
    require_opcode: option({ what: rest(opcode, 1) }),
  },
  check(config, report, at) {
    const seen = new Map<string, Uint8Array>();
    for (const { name, key } of config.secret) {
      const text = name.toLowerCase().toString();
      const other = seen.get(text);
      if (other !== undefined)
        report.error("TSIG_KEY_REPEATED", at("secret"), `the key ${text} has more than one secret`);
      seen.set(text, key);
    }
  },
});

/** Tests a value against the words of a `require` line. */
export function requirement(words: readonly (string | number)[] | undefined): (number: number) => boolean {
  if (words === undefined || words.includes(NONE)) return () => false;
  if (words.includes(ALL)) return () => true;
  const numbers = new Set(words);
  return (number) => numbers.has(number);
}
