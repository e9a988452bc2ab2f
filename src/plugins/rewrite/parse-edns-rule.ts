/** `edns0 local|nsid|subnet ACTION ...` */
import type { Token } from "../../corefile/tokens.ts";
import {
  EDNS_ACTIONS,
  type EdnsAction,
  EdnsRule,
  FixedData,
  NSID_CODE,
  type OptionSource,
  SUBNET_CODE,
  SubnetData,
  VARIABLES,
  VariableData,
} from "./edns-rule.ts";
import type { RewriteRule } from "./rule.ts";
import { RuleProblem, type RuleWords } from "./rule-words.ts";

export function parseEdnsRule(words: RuleWords): RewriteRule {
  const [kind, action, ...args] = words.args;
  if (kind === undefined || action === undefined)
    throw new RuleProblem("too few arguments for an EDNS0 rule", {
      at: kind,
      expected: "local, nsid or subnet, and an action",
    });
  switch (kind.text.toLowerCase()) {
    case "local":
      return localRule(words, readAction(action), args);
    case "nsid":
      return nsidRule(words, readAction(action), args);
    case "subnet":
      return subnetRule(words, readAction(action), args);
    default:
      throw new RuleProblem(`invalid rule type "${kind.text}"`, {
        at: kind,
        expected: "local, nsid or subnet",
      });
  }
}

function readAction(word: Token): EdnsAction {
  const action = EDNS_ACTIONS.find((known) => known === word.text.toLowerCase());
  if (action !== undefined) return action;
  throw new RuleProblem(`invalid action: "${word.text}"`, {
    at: word,
    expected: `one of ${EDNS_ACTIONS.join(", ")}`,
  });
}

function localRule({ continues, text }: RuleWords, action: EdnsAction, args: readonly Token[]): RewriteRule {
  if (action === "unset") {
    if (args.length !== 1)
      throw new RuleProblem("local unset action requires exactly two arguments", { at: args[1] });
    const code = readUnsigned(args[0], 0xffff);
    return new EdnsRule({ continues, text, action, code, source: NO_DATA, revert: false });
  }
  const [code, data, last] = args;
  const revert = isRevert(last);
  if (data === undefined || args.length > 3 || (last !== undefined && !revert))
    throw new RuleProblem("EDNS0 local rules require three or four args", {
      at: last ?? code,
      expected: "CODE DATA [revert]",
    });
  return new EdnsRule({
    continues,
    text,
    action,
    code: readUnsigned(code, 0xffff),
    source: readData(data),
    revert,
  });
}

function nsidRule({ continues, text }: RuleWords, action: EdnsAction, args: readonly Token[]): RewriteRule {
  if (action === "unset" && args.length > 0)
    throw new RuleProblem("nsid unset action requires exactly one argument", { at: args[0] });
  const revert = isRevert(args[0]);
  if (args.length > 1 || (args.length === 1 && !revert))
    throw new RuleProblem("EDNS0 NSID rules can accept no more than one arg", {
      at: args[0],
      expected: "revert, or nothing",
    });
  return new EdnsRule({ continues, text, action, code: NSID_CODE, source: NO_DATA, revert });
}

function subnetRule({ continues, text }: RuleWords, action: EdnsAction, args: readonly Token[]): RewriteRule {
  if (action === "unset") {
    if (args.length > 0)
      throw new RuleProblem("subnet unset action requires exactly one argument", { at: args[0] });
    return new EdnsRule({ continues, text, action, code: SUBNET_CODE, source: NO_DATA, revert: false });
  }
  const [ipv4, ipv6, last] = args;
  const revert = isRevert(last);
  if (ipv6 === undefined || args.length > 3 || (last !== undefined && !revert)) {
    throw new RuleProblem("EDNS0 subnet rules require three or four args", {
      at: last ?? ipv4,
      expected: "V4BITS V6BITS [revert]",
    });
  }
  const source = new SubnetData(readBits(ipv4, 32, "IPv4"), readBits(ipv6, 128, "IPv6"));
  return new EdnsRule({ continues, text, action, code: SUBNET_CODE, source, revert });
}

/** An empty option: clients request the NSID with it (RFC 5001). */
const NO_DATA: OptionSource = new FixedData(new Uint8Array(0));

function isRevert(word: Token | undefined): boolean {
  return word?.text.toLowerCase() === "revert";
}

/** A decimal number, or a hexadecimal one with `0x`. */
function readUnsigned(word: Token | undefined, most: number): number {
  const text = word?.text ?? "";
  const isNumber = /^(?:\d+|0x[0-9a-f]+)$/i.test(text);
  if (isNumber && Number(text) <= most) return Number(text);
  const problem = isNumber ? "value out of range" : "invalid syntax";
  throw new RuleProblem(`strconv.ParseUint: parsing "${text}": ${problem}`, {
    at: word,
    expected: `a number from 0 to ${most}`,
  });
}

function readBits(word: Token | undefined, most: number, family: string): number {
  const bits = readUnsigned(word, Number.MAX_SAFE_INTEGER);
  if (bits <= most) return bits;
  throw new RuleProblem(`invalid ${family} bit mask length ${bits}`, { at: word, expected: `0 to ${most}` });
}

function readData(word: Token): OptionSource {
  const { text } = word;
  if (text.startsWith("0x")) return new FixedData(readHex(word));
  if (!text.startsWith("{") || !text.endsWith("}")) return new FixedData(Buffer.from(text));
  const name = text.slice(1, -1);
  const variable = VARIABLES.get(name);
  if (variable !== undefined) return new VariableData(variable);
  if (/^[^/]+\/.+$/.test(name)) {
    return new VariableData((query) => {
      const value = query.metadataValue(name);
      return value === undefined ? undefined : Buffer.from(value);
    });
  }
  throw new RuleProblem(`unsupported variable name "${text}"`, {
    at: word,
    expected: `one of ${Array.from(VARIABLES.keys(), (known) => `{${known}}`).join(", ")}, or a metadata label such as {plugin/name}`,
  });
}

function readHex(word: Token): Uint8Array {
  const digits = word.text.slice(2);
  if (!/^[0-9a-f]*$/i.test(digits))
    throw new RuleProblem(`encoding/hex: invalid byte in "${digits}"`, {
      at: word,
      expected: "hexadecimal digits",
    });
  if (digits.length % 2 === 1)
    throw new RuleProblem("encoding/hex: odd length hex string", {
      at: word,
      expected: "two digits for each byte",
    });
  return Buffer.from(digits, "hex");
}
