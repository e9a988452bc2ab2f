/** A queue for bursts of work: items that do not fit into the share of this event-loop turn are done in later ones. */
import type { SharedTurns } from "../time/turn-share.ts";

/** Items between two readings of the clock. */
const A_LOOK = 4;

export class Backlog<T> {
  readonly #turns: Pick<SharedTurns, "isOver" | "later">;
  readonly #work: (item: T) => void;
  #items: T[] = [];
  #done = 0;
  /** Working now, or in a later turn. */
  #isBusy = false;

  /** @param work handles one item; an exception goes to the caller, and the other items are done later */
  constructor(turns: Pick<SharedTurns, "isOver" | "later">, work: (item: T) => void) {
    this.#turns = turns;
    this.#work = work;
  }

  /** Starts with the items at once, unless others wait. */
  add(items: readonly T[]): void {
    for (const item of items) this.#items.push(item);
    if (!this.#isBusy) this.#goOn();
  }

  /** Drops the waiting items. */
  clear(): void {
    this.#items = [];
    this.#done = 0;
  }

  readonly #goOn = (): void => {
    this.#isBusy = true;
    let isOver = false;
    try {
      for (let count = 1; !isOver && this.#done < this.#items.length; count++) {
        const item = this.#items[this.#done++] as T;
        this.#work(item);
        isOver = count % A_LOOK === 0 && this.#turns.isOver;
      }
    } finally {
      this.#isBusy = this.#done < this.#items.length;
      if (this.#isBusy) this.#turns.later(this.#goOn);
      else this.clear();
    }
  };
}
