/** One evaluation: the facts it is about, its variables, and how much work it may still do. */
import { RunFault } from "../values/language-error.ts";
import type { ExpressionValue, Meter } from "../values/values.ts";

/**
 * Work that one evaluation may do: elements made or looked at, and octets of text divided by {@link TEXT_UNIT}. Enough for anything that
 * decides about a query, and over in a few milliseconds.
 */
export const RUN_BUDGET = 100_000;

/** Work that may be done at set-up for the parts that do not depend on the query. */
export const SETUP_BUDGET = 1_000_000;

/** Text is handled so many octets at a time. */
export const TEXT_UNIT = 32;

export class Run<F> implements Meter {
  facts: F;
  /** Values of `let` and of `#`, by number. Kept from one evaluation to the next, as a query costs no array. */
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

  /** Lets go of what the evaluation made. */
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

/** A part of an expression, ready to be run. */
export type Evaluate<F> = (run: Run<F>) => ExpressionValue;
