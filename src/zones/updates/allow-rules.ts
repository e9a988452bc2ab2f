/** `allow KEY NAME TYPE...`: lines that give a key permission for changes. */
import type { Span } from "../../corefile/diagnostic.ts";
import { Name } from "../../dns/name.ts";
import { parseRecordType, RecordType } from "../../dns/type-names.ts";
import { INVALID } from "../../plugin/config/arguments.ts";
import type { Option } from "../../plugin/config/options.ts";
import type { UpdatePermission } from "./update-policy.ts";

/** A line, whose name may be in any zone. */
export interface AllowRule {
  readonly key: Name;
  /** `@` is the apex, `*` are all names. */
  readonly name: string;
  readonly types: readonly number[] | undefined;
  readonly span: Span;
}

/** Types that updates cannot change in a zone of `dynupdate`: the zone would need new signatures or checksums. */
export const UNSUPPORTED_TYPES: ReadonlySet<number> = new Set(
  "SIG KEY NXT DS RRSIG NSEC DNSKEY NSEC3 NSEC3PARAM TALINK CDS CDNSKEY TA DLV ZONEMD"
    .split(" ")
    .flatMap((word) => parseRecordType(word) ?? []),
);

const FIRST_META_TYPE = 249;

function parseType(word: string): number | undefined {
  const type = parseRecordType(word);
  if (type === RecordType.ANY) return type;
  const isMeta = type === undefined || type === RecordType.OPT || (type >= FIRST_META_TYPE && type <= 255);
  return isMeta || UNSUPPORTED_TYPES.has(type) ? undefined : type;
}

function parseName(word: string): Name | undefined {
  if (word === "") return undefined;
  try {
    return Name.parse(word.endsWith(".") ? word : `${word}.`).toLowerCase();
  } catch {
    return undefined;
  }
}

export function allowRules(): Option<readonly AllowRule[]> {
  return {
    read(lines, { report }) {
      const rules: AllowRule[] = [];
      for (const { name: keyword, args } of lines) {
        const refuse = (text: string): typeof INVALID => {
          report.error("ALLOW_RULE_BAD", keyword.span, text, { expected: "allow KEY NAME TYPE..." });
          return INVALID;
        };
        const [keyWord, name, ...words] = args.map((token) => token.text);
        if (keyWord === undefined || name === undefined || words.length === 0)
          return refuse("allow requires KEY NAME and at least one RR type");
        // The words for names have no meaning for keys.
        const key = keyWord === "*" || keyWord === "@" ? undefined : parseName(keyWord.trim());
        if (key === undefined) return refuse(`invalid TSIG key "${keyWord}"`);
        const isWild = words.includes("*");
        if (isWild && words.length > 1)
          return refuse("wildcard RR type must be the only type in an allow rule");
        const types: number[] = [];
        for (const word of isWild ? [] : words) {
          const type = parseType(word);
          if (type === undefined) return refuse(`invalid RR type "${word}" in allow rule`);
          types.push(type);
        }
        rules.push({ key, name, types: isWild ? undefined : types, span: keyword.span });
      }
      return rules;
    },
    usage: "KEY NAME TYPE...",
  };
}

/** @returns a complaint if the name of the rule is outside of the zone */
export function permissionOf({ key, name, types }: AllowRule, zone: Name): UpdatePermission | string {
  if (name === "*") return { key, name: undefined, types };
  if (name === "@") return { key, name: zone, types };
  const owner = parseName(name);
  if (owner?.isAtOrBelow(zone) === true) return { key, name: owner, types };
  return `allow name "${name}" is outside zone "${zone}"`;
}

/** The permissions of checked rules. */
export function permissionsOf(rules: readonly AllowRule[], zone: Name): UpdatePermission[] {
  return rules.flatMap((rule) => {
    const permission = permissionOf(rule, zone);
    return typeof permission === "string" ? [] : [permission];
  });
}
