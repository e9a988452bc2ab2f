/** Limits the frames of a client that advance no request: pings, settings, resets, windows, crumbs of a body. */

const FRAMES = 1000;
const PERIOD = 30_000;
const A_RESPONSE = 4;

export class Patience {
  #left = FRAMES;
  /** When it was last full, on the clock. */
  #since: number;

  constructor(now: number) {
    this.#since = now;
  }

  /** A whole request is answered: its client may well have widened windows for it. */
  restore(): void {
    this.#left = Math.min(FRAMES, this.#left + A_RESPONSE);
  }

  /** @returns false if {@link FRAMES} frames came within {@link PERIOD} milliseconds */
  spend(now: number): boolean {
    if (--this.#left >= 0) return true;
    if (now - this.#since < PERIOD) return false;
    this.#left = FRAMES;
    this.#since = now;
    return true;
  }
}
