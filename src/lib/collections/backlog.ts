/** Work for many that comes at one moment: what does not fit into the share of this turn of the event loop is done in later ones. */
import type { SharedTurns } from "../time/turn-share.ts";

/** Between two looks at the clock. */
const A_LOOK = 4;

export class Backlog<T> {
  readonly #turns: Pick<SharedTurns, "isOver" | "later">;
  readonly #work: (item: T) => void;
  #items: T[] = [];
  #done = 0;
  /** At work now, or in a later turn. */
  #isBusy = false;

  /** @param work for one of them; what it throws goes to whoever called, and the others are done later */
  constructor(turns: Pick<SharedTurns, "isOver" | "later">, work: (item: T) => void) {
    this.#turns = turns;
    this.#work = work;
  }

  /** Begins with them at once, unless others wait. */
  add(items: readonly T[]): void {
    for (const item of items) this.#items.push(item);
    if (!this.#isBusy) this.#goOn();
  }

  /** Nothing is done for those who wait. */
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
