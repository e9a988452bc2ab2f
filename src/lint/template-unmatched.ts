import { formatPlace } from "../corefile/diagnostic.ts";
import { normaliseZone } from "../corefile/server-key.ts";
import type { Directive } from "../corefile/tree.ts";
import { Name } from "../dns/name.ts";
import { optionLines } from "../plugin/contract/zone-claims.ts";
import type { LintBlock } from "./lint-block.ts";
import type { LintRule } from "./rule.ts";

/** Finds a template that never answers: because of an earlier template, or a regular expression that matches no name. */
export const templateUnmatched: LintRule = {
  code: "LINT_TEMPLATE_UNMATCHED",
  about: "a template can never match",

  check({ blocks }, report) {
    for (const block of blocks) {
      const templates = block.directives.filter(
        ({ name, args }) => name.text === "template" && args.length >= 2,
      );
      for (const [index, template] of templates.entries()) {
        const barrier = templates.slice(0, index).find((other) => stops(other, template, block));
        if (barrier !== undefined) {
          report.warning(
            templateUnmatched.code,
            template.name.span,
            `this template is never reached: the one at ${formatPlace(barrier.name.span)} passes none of its queries on`,
            { expected: "'fallthrough' in the earlier template, or this template before it" },
          );
        }
        for (const token of optionLines(template, "match").flatMap(({ args }) => args)) {
          const reason = whyNever(token.text);
          if (reason === undefined) continue;
          report.warning(
            templateUnmatched.code,
            token.span,
            `this regular expression matches no name: ${reason.text}`,
            {
              expected: reason.expected,
            },
          );
        }
      }
    }
  },
};

/** Whether no query for `template` passes `other`, which comes earlier. */
function stops(other: Directive, template: Directive, block: LintBlock): boolean {
  const [[otherClass, otherType], [ownClass, ownType]] = [other, template].map(({ args }) =>
    args.map(({ text }) => text),
  ) as [string[], string[]];
  if (otherClass !== "ANY" && otherClass !== ownClass) return false;
  if (otherType !== "ANY" && otherType !== ownType) return false;
  const zones = zonesOf(other, block);
  if (!zonesOf(template, block).every((zone) => zones.some((taken) => zone.isAtOrBelow(taken)))) return false;
  const decides = ["match", "expr"].some((option) => optionLines(other, option).length > 0);
  return !decides || optionLines(other, "fallthrough").length === 0;
}

function zonesOf({ args }: Directive, block: LintBlock): readonly Name[] {
  const words = args.slice(2);
  if (words.length === 0) return block.zones;
  return words.flatMap(({ text }) => normaliseZone(text)).map((zone) => Name.parse(zone));
}

/** Only certain cases: expressions with alternatives or flags are skipped. */
function whyNever(pattern: string): { readonly text: string; readonly expected: string } | undefined {
  if (pattern.includes("|") || pattern.includes("(?i")) return undefined;
  if (/(?:^|[^\\])[A-Za-z0-9]\$$/.test(pattern))
    return {
      text: "names end with a dot",
      expected: String.raw`a dot before the $, as in ^www\.example\.org\.$`,
    };
  const literal = pattern
    .replaceAll(/\\[pP]\{[^}]*\}|\\./g, "")
    .replaceAll(/\(\?P?<[^>]*>/g, "")
    .replaceAll(/\[[^\]]*\]/g, "");
  if (!/[A-Z](?![?*{])/.test(literal)) return undefined;
  return { text: "names are compared in lower case", expected: "lower-case letters" };
}
