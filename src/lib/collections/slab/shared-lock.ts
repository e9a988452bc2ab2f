/**
 * A lock for those who write to memory that several threads share. Nobody sleeps: who does not get it in a few microseconds goes without.
 * A thread that was ended while it wrote leaves the lock and half a change behind; the next one is told so. Should it go on all the same, it cannot release what is
 * another thread's by then.
 */

/** Words of the lock. */
export const LOCK_WORDS = 3;
/** The number of its owner; 0 for none. */
const OWNER = 0;
const SINCE = 1;
/** The number given last. */
const NUMBERS = 2;

/** Attempts, some 10 ns each. */
const PATIENCE = 2_000;
/** Milliseconds. What is done under the lock takes less than one. */
const ABANDONED_AFTER = 2_000;
/** Of the time between two looks of a thread, no more than this counts: the whole process may have been stopped, or its machine asleep. */
const LONGEST_LOOK = 100;

export const Taken = { NOT: 0, WHOLE: 1, ABANDONED: 2 } as const;

export class SharedLock {
  readonly #words: Int32Array;
  readonly #at: number;
  readonly #now: () => number;
  /** Each of those that take it has another one. */
  readonly #number: number;
  /** When this thread went without last: since when the lock was taken, for how long that had been so, and the time. */
  #seenSince = 0;
  #seenFor = 0;
  #lookedAt = 0;

  /** @param now milliseconds by a clock that all threads share */
  constructor(words: Int32Array, at: number, now: () => number) {
    this.#words = words;
    this.#at = at;
    this.#now = now;
    this.#number = Atomics.add(words, at + NUMBERS, 1) + 1;
  }

  /** `ABANDONED`: the lock is taken, and what it guards may be in any state. */
  take(): (typeof Taken)[keyof typeof Taken] {
    const words = this.#words;
    const owner = this.#at + OWNER;
    for (let attempt = 0; attempt < PATIENCE; attempt++) {
      if (Atomics.compareExchange(words, owner, 0, this.#number) !== 0) continue;
      this.#stamp();
      return Taken.WHOLE;
    }
    const other = Atomics.load(words, owner);
    const since = Atomics.load(words, this.#at + SINCE);
    if (!this.#isAbandoned(since)) return Taken.NOT;
    // Of several that notice only one goes on.
    if (Atomics.compareExchange(words, this.#at + SINCE, since, this.#now() | 0) !== since) return Taken.NOT;
    if (other === 0) return Taken.NOT;
    return Atomics.compareExchange(words, owner, other, this.#number) === other ? Taken.ABANDONED : Taken.NOT;
  }

  /**
   * Whether one and the same taking has stood for long enough, by the time in which this thread ran and saw it. The clock alone does not tell: who holds the lock may have
   * been stopped together with all others, and an old stamp may be that of the taking before, for as long as the new one is not written.
   */
  #isAbandoned(since: number): boolean {
    const now = this.#now();
    if (this.#seenSince === since) this.#seenFor += Math.min(now - this.#lookedAt, LONGEST_LOOK);
    else this.#seenFor = 0;
    this.#seenSince = since;
    this.#lookedAt = now;
    return this.#seenFor >= ABANDONED_AFTER;
  }

  release(): void {
    Atomics.compareExchange(this.#words, this.#at + OWNER, this.#number, 0);
  }

  #stamp(): void {
    Atomics.store(this.#words, this.#at + SINCE, this.#now() | 0);
  }
}
