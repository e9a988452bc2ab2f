import type { Counts } from "./test-events.ts";

/** What came of one step: its counts, and what a person has to read about it. */
export interface Outcome extends Counts {
  /** Empty where all is well. */
  readonly details: string;
  /** Why tests were skipped, each reason with the number of tests. */
  readonly skipReasons: ReadonlyMap<string, number>;
}

export const NOTHING: Outcome = { passed: 0, failed: 0, skipped: 0, details: "", skipReasons: new Map() };

/** The outcome of a check that has no counts of its own. */
export function checked(problem: string | undefined): Outcome {
  if (problem === undefined) return { ...NOTHING, passed: 1 };
  return { ...NOTHING, failed: 1, details: problem };
}

export function sum(outcomes: Iterable<Outcome>): Outcome {
  let total = NOTHING;
  for (const outcome of outcomes) {
    const skipReasons = new Map(total.skipReasons);
    for (const [reason, count] of outcome.skipReasons) {
      skipReasons.set(reason, (skipReasons.get(reason) ?? 0) + count);
    }
    total = {
      passed: total.passed + outcome.passed,
      failed: total.failed + outcome.failed,
      skipped: total.skipped + outcome.skipped,
      details: [total.details, outcome.details].filter((text) => text !== "").join("\n"),
      skipReasons,
    };
  }
  return total;
}

/** "812 passed, 0 failed, 3 skipped" */
export function countsText({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}
