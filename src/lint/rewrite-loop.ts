import { formatPlace } from "../corefile/diagnostic.ts";
import type { Token } from "../corefile/tokens.ts";
import type { Directive } from "../corefile/tree.ts";
import type { LintBlock } from "./lint-block.ts";
import type { LintRule } from "./rule.ts";

/** Finds `rewrite name` rules that restore a name that another rule, or the same one, has just changed. */
export const rewriteLoop: LintRule = {
  code: "LINT_REWRITE_LOOP",
  about: "rules that rewrite names lead back to where they began",

  check(input, report) {
    for (const block of input.blocks) {
      const rules = nameRules(block);
      if (rules.length > MAX_RULES) continue;
      for (const [index, rule] of rules.entries()) {
        const last = leadsBack(rules, index);
        if (last === undefined) continue;
        const message =
          last === rule
            ? `'${rule.from}' becomes itself: the rule changes nothing`
            : `'${rule.from}' becomes '${rule.to}' here, and '${rule.from}' again by the rule of ${formatPlace(last.token.span)}`;
        report.warning(rewriteLoop.code, rule.token.span, message);
      }
    }
  },
};

/** Every rule is checked against all later rules. */
const MAX_RULES = 500;

interface NameChange {
  readonly token: Token;
  readonly continues: boolean;
  readonly isSuffix: boolean;
  readonly from: string;
  readonly to: string;
}

/** The rule that restores the name changed by the rule at `index`, if there is one. */
function leadsBack(rules: readonly NameChange[], index: number): NameChange | undefined {
  const first = rules[index];
  if (first === undefined) return undefined;
  const start = first.isSuffix ? `name${first.from}` : first.from;
  let name = start;
  for (const rule of rules.slice(index)) {
    const changed = changeOf(rule, name);
    if (changed === undefined) continue;
    if (changed === start) return rule;
    if (!rule.continues) return undefined;
    name = changed;
  }
  return undefined;
}

function changeOf({ isSuffix, from, to }: NameChange, name: string): string | undefined {
  if (!isSuffix) return name === from ? to : undefined;
  return name.endsWith(from) && name.length > from.length
    ? `${name.slice(0, name.length - from.length)}${to}`
    : undefined;
}

function nameRules({ directives }: LintBlock): NameChange[] {
  return directives.filter(({ name }) => name.text === "rewrite").flatMap(readRule);
}

/** Rules that replace a whole name or a suffix. The effect of others depends on the name. */
function readRule(directive: Directive): NameChange[] {
  const words = [
    ...directive.args,
    ...(directive.args.length < 2 ? (directive.block ?? []) : []).flatMap(({ name, args }) => [
      name,
      ...args,
    ]),
  ];
  const mode = words[0]?.text.toLowerCase();
  const rest = words.slice(mode === "continue" || mode === "stop" ? 1 : 0);
  const [field, ...args] = rest;
  if (field?.text.toLowerCase() !== "name") return [];
  const kind = args.length === 2 ? "exact" : args[0]?.text.toLowerCase();
  const [from, to] = args.length === 2 ? args : args.slice(1);
  if (from === undefined || to === undefined || (kind !== "exact" && kind !== "suffix")) return [];
  return [
    {
      token: from,
      continues: mode === "continue",
      isSuffix: kind === "suffix",
      from: qualified(from.text),
      to: qualified(to.text),
    },
  ];
}

function qualified(text: string): string {
  const lower = text.toLowerCase();
  return lower.endsWith(".") ? lower : `${lower}.`;
}
