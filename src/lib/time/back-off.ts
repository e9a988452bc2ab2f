/** How long to wait before something that failed is tried again: longer each time, up to a bound, spread by chance. */

export interface BackOffOptions {
  /** Milliseconds. */
  readonly first: number;
  readonly longest: number;
  /** Which part of a wait is left to chance, from 0 to 1. Default 0.5: clients that failed together come back apart. */
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

  /** It worked: the next failure is the first one. */
  reset(): void {
    this.#failures = 0;
  }
}
