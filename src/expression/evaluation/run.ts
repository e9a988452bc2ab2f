/** One evaluation: its facts, its variables, and its remaining budget. */
import { RunFault } from "../values/language-error.ts";
import type { ExpressionValue, Meter } from "../values/values.ts";

/**
 * Budget of one evaluation: elements made or read, and bytes of text divided by {@link TEXT_UNIT}. Enough for any decision about a
 * query, and small enough to end quickly.
 */
export const RUN_BUDGET = 100_000;

/** Budget at setup for the parts that do not depend on the query. */
export const SETUP_BUDGET = 1_000_000;

/** Bytes of text that cost one unit. */
export const TEXT_UNIT = 32;

export class Run<F> implements Meter {
  facts: F;
  /** Values of `let` and of `#`, by number. Kept between evaluations, so that a query needs no array. */
  readonly slots: ExpressionValue[];
  #left = 0;

  constructor(facts: F, slots: number) {
    this.facts = facts;
    this.slots = new Array<ExpressionValue>(slots).fill(null);
  }

  start(facts: F, budget: number): void {
    this.facts = facts;
    this.#left = budget;
  }

  /** Releases the values of the evaluation. */
  end(): void {
    if (this.slots.length > 0) this.slots.fill(null);
  }

  spend(amount: number): void {
    this.#left -= amount;
    if (this.#left <= 0)
      throw new RunFault("memory budget exceeded: the expression makes too much, or runs for too long");
  }

  spendText(length: number): void {
    this.spend(Math.floor(length / TEXT_UNIT) + 1);
  }
}

/** A part of an expression, ready to run. */
export type Evaluate<F> = (run: Run<F>) => ExpressionValue;
