import { type BackEnd, mention, stops } from "./back-ends.ts";
import type { LintRule } from "./rule.ts";

/** Finds a back end after one that answers every query and passes none on. */
export const unreachable: LintRule = {
  code: "LINT_UNREACHABLE",
  about: "a plugin comes after one that answers every query",

  check(input, report) {
    for (const block of input.blocks) {
      const chain = input.backEnds(block);
      for (const hidden of chain) {
        const barrier = barrierBefore(hidden, chain);
        if (barrier === undefined || barrier.hasFallthrough) continue;
        // Of several similar plugins only the last counts; they report that themselves.
        if (barrier.name === hidden.name && barrier.name !== "forward") continue;
        const notes =
          barrier.written > hidden.written && barrier.name !== hidden.name
            ? [
                `'${barrier.name}' always runs before '${hidden.name}', regardless of their order in the Corefile`,
              ]
            : [];
        report.warning(
          unreachable.code,
          hidden.directive.name.span,
          `'${hidden.name}' is never reached: ${mention(barrier)} answers every query that gets this far`,
          { expected: remedy(hidden, barrier), notes },
        );
      }
    }
  },
};

/** The plugin that keeps every query from `hidden`; `undefined` if some may pass. */
export function barrierBefore(hidden: BackEnd, chain: readonly BackEnd[]): BackEnd | undefined {
  const before = chain.slice(0, chain.indexOf(hidden));
  let barrier: BackEnd | undefined;
  for (const zone of hidden.zones) {
    const found = before.find((other) => stops(other, hidden, zone));
    if (found === undefined) return undefined;
    barrier ??= found;
  }
  return barrier;
}

function remedy(hidden: BackEnd, barrier: BackEnd): string {
  return hidden.name === barrier.name
    ? "the narrower zone first: the first line that matches a name takes it"
    : `only one of the two, or a separate zone for '${hidden.name}'`;
}
