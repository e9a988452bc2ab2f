/**
 * A lock for those who write to memory that several threads share. Nobody sleeps: who does not get it in a few microseconds goes without.
 * A thread that was ended while it wrote leaves the lock and half a change behind; the next one is told so.
 */

/** Words of the lock. */
export const LOCK_WORDS = 2;
const OWNED = 0;
const SINCE = 1;

/** Attempts, some 10 ns each. */
const PATIENCE = 2_000;
/** Milliseconds. What is done under the lock takes less than one. */
const ABANDONED_AFTER = 2_000;

export const Taken = { NOT: 0, WHOLE: 1, ABANDONED: 2 } as const;

export class SharedLock {
  readonly #words: Int32Array;
  readonly #at: number;
  readonly #now: () => number;

  /** @param now milliseconds by a clock that all threads share */
  constructor(words: Int32Array, at: number, now: () => number) {
    this.#words = words;
    this.#at = at;
    this.#now = now;
  }

  /** `ABANDONED`: the lock is taken, and what it guards may be in any state. */
  take(): (typeof Taken)[keyof typeof Taken] {
    const words = this.#words;
    const owned = this.#at + OWNED;
    for (let attempt = 0; attempt < PATIENCE; attempt++) {
      if (Atomics.compareExchange(words, owned, 0, 1) !== 0) continue;
      this.#stamp();
      return Taken.WHOLE;
    }
    const since = Atomics.load(words, this.#at + SINCE);
    if (((this.#now() - since) | 0) < ABANDONED_AFTER) return Taken.NOT;
    // Of several that notice only one goes on.
    if (Atomics.compareExchange(words, this.#at + SINCE, since, this.#now() | 0) !== since) return Taken.NOT;
    return Atomics.load(words, owned) === 0 ? Taken.NOT : Taken.ABANDONED;
  }

  release(): void {
    Atomics.store(this.#words, this.#at + OWNED, 0);
  }

  #stamp(): void {
    Atomics.store(this.#words, this.#at + SINCE, this.#now() | 0);
  }
}
