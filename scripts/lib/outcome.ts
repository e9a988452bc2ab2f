import type { Counts, SkippedTest } from "./test-events.ts";

/** What came of one step: its counts, and what a person has to read about it. */
export interface Outcome extends Counts {
  /** Empty where all is well. */
  readonly details: string;
  readonly skips: readonly SkippedTest[];
  readonly times: readonly ProcessTime[];
}

/** How long a process that ran these test files took. */
export interface ProcessTime {
  readonly files: readonly string[];
  readonly seconds: number;
}

export const NOTHING: Outcome = { passed: 0, failed: 0, skipped: 0, details: "", skips: [], times: [] };

/** The outcome of a check that has no counts of its own. */
export function checked(problem: string | undefined): Outcome {
  if (problem === undefined) return { ...NOTHING, passed: 1 };
  return { ...NOTHING, failed: 1, details: problem };
}

export function sum(outcomes: Iterable<Outcome>): Outcome {
  let total = NOTHING;
  for (const outcome of outcomes) {
    total = {
      passed: total.passed + outcome.passed,
      failed: total.failed + outcome.failed,
      skipped: total.skipped + outcome.skipped,
      details: [total.details, outcome.details].filter((text) => text !== "").join("\n"),
      skips: [...total.skips, ...outcome.skips],
      times: [...total.times, ...outcome.times],
    };
  }
  return total;
}

/** "812 passed, 0 failed, 3 skipped" */
export function countsText({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}
