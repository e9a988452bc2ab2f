/** How many frames that bring no request further (pings, settings, resets, windows, crumbs of a body) a client may send. */

const FRAMES = 1000;
const PERIOD = 30_000;
const A_RESPONSE = 4;

export class Patience {
  #left = FRAMES;
  /** When it was whole last, by the clock. */
  #since: number;

  constructor(now: number) {
    this.#since = now;
  }

  /** A whole request is answered: its client may well have widened windows for it. */
  restore(): void {
    this.#left = Math.min(FRAMES, this.#left + A_RESPONSE);
  }

  /** @returns false where it is at its end: as many as {@link FRAMES} came within {@link PERIOD} milliseconds */
  spend(now: number): boolean {
    if (--this.#left >= 0) return true;
    if (now - this.#since < PERIOD) return false;
    this.#left = FRAMES;
    this.#since = now;
    return true;
  }
}
