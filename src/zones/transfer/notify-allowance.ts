/** Rate limit for checks caused by NOTIFY, because anyone can send NOTIFY with a primary's address as its source. */
import type { Clock } from "../../lib/time/clock.ts";

/** In one burst, after a pause. */
const BURST = 10;
/** Milliseconds for each further one. */
const INTERVAL = 250;

export class NotifyAllowance {
  readonly #clock: Clock;
  /** When the whole burst is available again, in the milliseconds of the clock. */
  #fullAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes one. @returns 0, or the milliseconds until one is available */
  take(): number {
    const now = this.#clock.now();
    const fullAt = Math.max(this.#fullAt, now) + INTERVAL;
    const wait = fullAt - now - BURST * INTERVAL;
    if (wait > 0) return wait;
    this.#fullAt = fullAt;
    return 0;
  }
}
