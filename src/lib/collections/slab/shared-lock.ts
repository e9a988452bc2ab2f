/**
 * A lock for threads that write to shared memory. No thread sleeps: one that does not get the lock within
 * microseconds goes on without writing. A thread that is terminated during a write leaves the lock taken and the data
 * half changed; the next owner is informed of that. If the old owner still runs, it cannot release a lock that
 * another thread has taken over.
 */

/** Words of the lock. */
export const LOCK_WORDS = 3;
/** The number of its owner; 0 for none. */
const OWNER = 0;
const SINCE = 1;
/** The latest number that was assigned. */
const NUMBERS = 2;

/** Attempts to take the lock. */
const PATIENCE = 2_000;
/** Milliseconds. Work under the lock takes far less. */
const ABANDONED_AFTER = 2_000;
/**
 * The most that counts of the time between two attempts of a thread: the whole process may have been stopped, or its
 * machine asleep.
 */
const LONGEST_LOOK = 100;

export const Taken = { NOT: 0, WHOLE: 1, ABANDONED: 2 } as const;

export class SharedLock {
  readonly #words: Int32Array;
  readonly #at: number;
  readonly #now: () => number;
  /** Unique for each user of the lock. */
  readonly #number: number;
  /**
   * This thread's last failed attempt: since when the lock was taken, for how long that had been observed, and the
   * time.
   */
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

  /** `ABANDONED`: the lock is taken over, and the data it guards may be in any state. */
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
    // Of several threads that notice, only one goes on.
    if (Atomics.compareExchange(words, this.#at + SINCE, since, this.#now() | 0) !== since) return Taken.NOT;
    if (other === 0) return Taken.NOT;
    return Atomics.compareExchange(words, owner, other, this.#number) === other ? Taken.ABANDONED : Taken.NOT;
  }

  /**
   * Whether the same owner has held the lock for too long, counting only time in which this thread was running and
   * saw it. The clock alone is not enough: the owner may have been stopped together with all other threads, and an
   * old time stamp may be that of the previous owner until the new owner has written its own.
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
