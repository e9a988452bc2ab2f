/** How often NOTIFY makes a secondary ask its primaries: anybody can send as many as he likes under a primary's address. */
import type { Clock } from "../../lib/time/clock.ts";

/** At one time, after a pause. */
const BURST = 10;
/** Milliseconds for each one after that. */
const INTERVAL = 250;

export class NotifyAllowance {
  readonly #clock: Clock;
  /** When all of the burst may be used again, in the milliseconds of the clock. */
  #fullAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes one. @returns 0, or the milliseconds after which there is one again where there is none now */
  take(): number {
    const now = this.#clock.now();
    const fullAt = Math.max(this.#fullAt, now) + INTERVAL;
    const wait = fullAt - now - BURST * INTERVAL;
    if (wait > 0) return wait;
    this.#fullAt = fullAt;
    return 0;
  }
}
