/** How long to wait after failures: longer each time, and never the same for all replicas. */

const FIRST_MS = 200;
/** The longest wait of client-go. A waiting watch is woken as soon as another one works again. */
const LONGEST_MS = 30_000;
/** A server that asks for more than this is not believed. */
const MAX_RETRY_AFTER_MS = 60_000;
/** Leads to waits of half a second or so. */
const EASED_FAILURES = 2;

export class Backoff {
  readonly #random: () => number;
  #failures = 0;

  /** @param random uniform in [0, 1) */
  constructor(random: () => number) {
    this.#random = random;
  }

  /** Failures since the server was last well for some time. */
  get failures(): number {
    return this.#failures;
  }

  recovered(): void {
    this.#failures = 0;
  }

  /** What is known moves on in spite of the failures: the next waits are short ones again. */
  ease(): void {
    this.#failures = Math.min(this.#failures, EASED_FAILURES);
  }

  /**
   * Counts a failure.
   * @param atLeastMs what the server asked for
   * @returns how long to wait, in milliseconds
   */
  failed(atLeastMs = 0): number {
    const full = Math.min(LONGEST_MS, FIRST_MS * 2 ** this.#failures);
    this.#failures++;
    // Half of it is fixed, so that no watch retries at once; on top of what a server asks for as well.
    return Math.max(full / 2, Math.min(atLeastMs, MAX_RETRY_AFTER_MS)) + (full / 2) * this.#random();
  }
}
