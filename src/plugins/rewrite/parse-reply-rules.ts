/** `ttl`, `rcode` and `cname` rules. */
import type { Token } from "../../corefile/tokens.ts";
import { type Name, parseRcode } from "../../dns/index.ts";
import { ValueProblem } from "../../plugin/index.ts";
import {
  ExactName,
  MATCH_KINDS,
  type MatchKind,
  type NameCondition,
  PatternName,
  TextChange,
} from "./name-change.ts";
import { nameOfResult, parseTextPart } from "./name-text.ts";
import { type PatternTemplate, parseTemplate } from "./pattern-template.ts";
import { ChangedTarget, CnameRule, RcodeChange, ReplyRule, TtlBounds } from "./reply-rules.ts";
import type { RewriteRule } from "./rule.ts";
import { RuleProblem, type RuleWords, wordAt } from "./rule-words.ts";

/** `ttl [exact|prefix|suffix|substring|regex] NAME TTL` */
export function parseTtlRule({ args, continues, text }: RuleWords): RewriteRule {
  requireArguments(args, 2, "ttl");
  const { kind, rest } = splitKind(args, 2, "ttl");
  const [name, bounds] = rest;
  return new ReplyRule(continues, text, condition(kind, name, "ttl"), readBounds(bounds));
}

/** `rcode [exact|prefix|suffix|substring|regex] NAME FROM TO` */
export function parseRcodeRule({ args, continues, text }: RuleWords): RewriteRule {
  requireArguments(args, 3, "rcode");
  const { kind, rest } = splitKind(args, 3, "rcode");
  const [name, from, to] = rest;
  const change = new RcodeChange(readRcode(from, "matching"), readRcode(to, "replacement"));
  return new ReplyRule(continues, text, condition(kind, name, "rcode"), change);
}

/** `cname [exact|prefix|suffix|substring|regex] FROM TO` */
export function parseCnameRule({ args, continues, text }: RuleWords): RewriteRule {
  requireArguments(args, 2, "cname");
  const { kind, rest } = splitKind(args, 2, "cname");
  const [from = "", to = ""] = rest.map((word) => word.text.toLowerCase());
  return new CnameRule(continues, text, new ChangedTarget(targetChange(kind, from, to, rest[0])));
}

function requireArguments(args: readonly Token[], least: number, rule: string): void {
  if (args.length >= least) return;
  throw new RuleProblem(`too few (${args.length}) arguments for a ${rule} rule`, { at: args.at(-1) });
}

/** The kind of match may be left out, but only if no other word follows. */
function splitKind(
  args: readonly Token[],
  count: number,
  rule: string,
): { readonly kind: MatchKind; readonly rest: readonly Token[] } {
  if (args.length === count) return { kind: "exact", rest: args };
  const kind = MATCH_KINDS.find((known) => known === wordAt(args, 0).toLowerCase());
  if (kind === undefined) {
    const message = `${rule} rule supports only exact, prefix, suffix, substring, and regex name matching`;
    throw new RuleProblem(message, { at: args[0], expected: `one of ${MATCH_KINDS.join(", ")}` });
  }
  const extra = args[count + 1];
  if (extra !== undefined) {
    throw new RuleProblem(`exceeded the number of arguments for a ${rule} rule: '${extra.text}'`, {
      at: extra,
    });
  }
  return { kind, rest: args.slice(1) };
}

function condition(kind: MatchKind, word: Token | undefined, rule: string): NameCondition {
  const text = word?.text ?? "";
  switch (kind) {
    case "exact":
      return new ExactName(text, text);
    case "regex":
      return new PatternName(template(text, word, `invalid regex pattern in a ${rule} rule`));
    default: {
      const part = parseTextPart(text, true);
      return new TextChange(kind, part, part);
    }
  }
}

function template(expression: string, at: Token | undefined, problem: string, result = ""): PatternTemplate {
  const parsed = parseTemplate(expression, result, { problem, checkGroups: false });
  if (parsed instanceof ValueProblem) throw new RuleProblem(parsed.message, { at });
  return parsed;
}

/** `N`, `MIN-MAX`, `-MAX` or `MIN-`, seconds. */
function readBounds(word: Token | undefined): TtlBounds {
  const text = word?.text ?? "";
  const match = /^(?:(?<only>\d+)|(?<least>\d*)-(?<most>\d*))$/.exec(text);
  const { only, least, most } = match?.groups ?? {};
  const low = Number(only ?? (least || 0));
  const high = Number(only ?? (most || LONGEST_TTL));
  if (match === null || text === "-" || high > 0xffff_ffff || low > high) {
    throw new RuleProblem(`invalid TTL '${text}' for a ttl rule`, {
      at: word,
      expected: "seconds, or bounds such as 30-300, 30- or -300",
    });
  }
  return new TtlBounds(low, high);
}

/** RFC 2181 section 8. */
const LONGEST_TTL = 0x7fff_ffff;

function readRcode(word: Token | undefined, which: string): number {
  const text = word?.text ?? "";
  const rcode = /^\d+$/.test(text) ? Number(text) : parseRcode(text.toUpperCase());
  if (rcode !== undefined && rcode <= 23) return rcode;
  throw new RuleProblem(`invalid ${which} RCODE '${text}' for a rcode rule`, {
    at: word,
    expected: "an rcode such as NXDOMAIN, or a number from 0 to 23",
  });
}

/** Targets are compared as text; only for `exact` are names completed with a dot, as in CoreDNS. */
function targetChange(
  kind: MatchKind,
  from: string,
  to: string,
  word: Token | undefined,
): (text: string) => Name | undefined {
  switch (kind) {
    case "exact": {
      const [old, made] = [qualified(from), nameOfResult(qualified(to))];
      return (text) => (text === old ? made : undefined);
    }
    case "prefix":
      return (text) => (text.startsWith(from) ? nameOfResult(to + text.slice(from.length)) : undefined);
    case "suffix":
      return (text) =>
        text.endsWith(from) ? nameOfResult(text.slice(0, text.length - from.length) + to) : undefined;
    case "substring":
      return (text) =>
        from !== "" && text.includes(from) ? nameOfResult(text.replaceAll(from, to)) : undefined;
    case "regex": {
      const pattern = template(word?.text ?? "", word, "invalid regex pattern in a cname rule", to);
      return (text) => {
        const result = pattern.rewrite(text);
        return result === undefined ? undefined : nameOfResult(result);
      };
    }
  }
}

function qualified(text: string): string {
  return text.endsWith(".") ? text : `${text}.`;
}
