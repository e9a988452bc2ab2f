/** Delays between retries: growing up to a bound, with jitter. */

export interface BackOffOptions {
  /** Milliseconds. */
  readonly first: number;
  readonly longest: number;
  /** The random part of a delay, from 0 to 1. Default 0.5: clients that failed together retry at different times. */
  readonly jitter?: number;
  readonly random: { fraction(): number };
}

export class BackOff {
  readonly #options: BackOffOptions;
  #failures = 0;

  constructor(options: BackOffOptions) {
    this.#options = options;
  }

  /** Milliseconds until the next attempt. */
  next(): number {
    const { first, longest, jitter = 0.5, random } = this.#options;
    const wait = Math.min(longest, first * 2 ** this.#failures);
    if (wait < longest) this.#failures++;
    return wait * (1 - jitter * random.fraction());
  }

  /** Resets the delays after a success. */
  reset(): void {
    this.#failures = 0;
  }
}
