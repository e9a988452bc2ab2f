import { type BackEnd, mention, stops } from "./back-ends.ts";
import type { LintRule } from "./rule.ts";

/**
 * Finds two back ends for one zone that run in another order than written. Matters only if the one written first would have passed
 * names on to the other.
 */
export const runOrder: LintRule = {
  code: "LINT_RUN_ORDER",
  about: "two plugins answer for one zone, in another order than that of the Corefile",

  check(input, report) {
    for (const block of input.blocks) {
      const chain = input.backEnds(block);
      for (const [index, late] of chain.entries()) {
        const early = chain.slice(0, index).find((other) => isTurnedAround(other, late));
        if (early === undefined) continue;
        report.warning(
          runOrder.code,
          late.directive.name.span,
          `${mention(early)} runs before '${late.name}', although it is listed after it: its answers win`,
          {
            notes: [
              "plugins run in the order of plugin.cfg: list them in that order if that is what you want",
            ],
          },
        );
      }
    }
  },
};

function isTurnedAround(early: BackEnd, late: BackEnd): boolean {
  if (early.written < late.written) return false;
  return late.zones.some(
    (zone) =>
      early.zones.some((other) => other.equals(zone)) &&
      !stops(early, late, zone) &&
      !stops(late, early, zone),
  );
}
