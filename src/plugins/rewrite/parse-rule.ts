/** `rewrite [continue|stop] FIELD ARGS...`, on one line or in a block. */
import type { Token } from "../../corefile/tokens.ts";
import type { Directive } from "../../corefile/tree.ts";
import { parseClass, parseRecordType } from "../../dns/index.ts";
import { nearestWord } from "../../lib/text/nearest-word.ts";
import type { ConfigContext } from "../../plugin/config/context.ts";
import { parseEdnsRule } from "./parse-edns-rule.ts";
import { parseNameRule } from "./parse-name-rule.ts";
import { parseCnameRule, parseRcodeRule, parseTtlRule } from "./parse-reply-rules.ts";
import { ClassRule, TypeRule } from "./question-rules.ts";
import type { RewriteRule } from "./rule.ts";
import { RuleProblem, type RuleWords } from "./rule-words.ts";

const FIELDS = new Map<string, (words: RuleWords) => RewriteRule>([
  ["name", parseNameRule],
  ["class", parseClassRule],
  ["type", parseTypeRule],
  ["edns0", parseEdnsRule],
  ["ttl", parseTtlRule],
  ["cname", parseCnameRule],
  ["rcode", parseRcodeRule],
]);

/** @returns `undefined` after reporting a problem */
export function parseRule(directive: Directive, context: ConfigContext): RewriteRule | undefined {
  try {
    return ruleOf(wordsOf(directive), context);
  } catch (error) {
    if (!(error instanceof RuleProblem)) throw error;
    context.report.error("REWRITE_BAD_RULE", error.span ?? directive.name.span, error.message, {
      ...(error.expected !== undefined && { expected: error.expected }),
    });
    return undefined;
  }
}

/** The words of a block are used if the line has no rule of its own. */
function wordsOf(directive: Directive): readonly Token[] {
  if (directive.args.length >= 2 || directive.block === undefined) return directive.args;
  return [...directive.args, ...directive.block.flatMap(({ name, args }) => [name, ...args])];
}

function ruleOf(words: readonly Token[], context: ConfigContext): RewriteRule {
  const [first, second] = words;
  if (first === undefined)
    throw new RuleProblem("no rule type specified for rewrite", { expected: EXPECTED });
  const mode = first.text.toLowerCase();
  const hasMode = mode === "continue" || mode === "stop";
  if (hasMode && second === undefined) {
    throw new RuleProblem(`${mode} rule must begin with a rule type`, { at: first, expected: EXPECTED });
  }
  const field = hasMode && second !== undefined ? second : first;
  const keyword = field.text.toLowerCase();
  if (keyword === "answer") {
    throw new RuleProblem("response rewrites must begin with a name rule", {
      at: field,
      expected: "name [exact|prefix|suffix|substring|regex] FROM TO before it",
    });
  }
  const parse = FIELDS.get(keyword);
  if (parse === undefined) {
    const near = nearestWord(keyword, [...FIELDS.keys()]);
    throw new RuleProblem(`invalid rule type "${field.text}"`, {
      at: field,
      expected: near === undefined ? EXPECTED : `${EXPECTED}; did you mean '${near}'?`,
    });
  }
  const args = words.slice(words.indexOf(field) + 1);
  const text = words.map((word) => word.text).join(" ");
  return parse({ continues: mode === "continue", args, text, context });
}

const EXPECTED = `[continue|stop], and one of ${[...FIELDS.keys()].join(", ")}`;

function parseClassRule({ args, continues, text }: RuleWords): RewriteRule {
  if (args.length !== 2)
    throw new RuleProblem("class rules must have exactly two arguments", { at: args[2] });
  const [from, to] = args.map((word) => {
    const parsed = /^CLASS\d+$/i.test(word.text) ? undefined : parseClass(word.text);
    if (parsed !== undefined) return parsed;
    throw new RuleProblem(`invalid class "${word.text.toUpperCase()}"`, {
      at: word,
      expected: "a class such as IN or CH",
    });
  });
  return new ClassRule(continues, text, from ?? 0, to ?? 0);
}

function parseTypeRule({ args, continues, text }: RuleWords): RewriteRule {
  if (args.length !== 2) throw new RuleProblem("type rules must have exactly two arguments", { at: args[2] });
  const [from, to] = args.map((word) => {
    const parsed = /^TYPE\d+$/i.test(word.text) ? undefined : parseRecordType(word.text);
    if (parsed !== undefined) return parsed;
    throw new RuleProblem(`invalid type "${word.text.toUpperCase()}"`, {
      at: word,
      expected: "a record type such as A or HTTPS",
    });
  });
  return new TypeRule(continues, text, from ?? 0, to ?? 0);
}
