/** Says in the log which objects cannot be used, without a line for each of thousands. */

import type { Logger } from "../../../lib/logging/log.ts";
import type { Clock, Timer } from "../../../lib/time/clock.ts";

/** Milliseconds between two lines. */
const PAUSE_MS = 60_000;
/** Objects that were reported with their problem are not reported again, and no more of them are remembered than this. */
const MAX_KNOWN = 1000;

export class UnusableLog {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #known = new Set<string>();
  /** Runs while lines have to wait. */
  #pause: Timer | undefined;
  #waiting = 0;
  #last = "";

  constructor(log: Logger, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  report(identity: string, problem: string): void {
    const line = `${identity} cannot be used: ${problem}`;
    if (this.#known.has(line)) return;
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    this.#known.add(line);
    if (this.#pause === undefined) {
      this.#log.warning(line);
      this.#begin();
      return;
    }
    this.#waiting++;
    this.#last = line;
  }

  stop(): void {
    this.#pause?.cancel();
    this.#pause = undefined;
  }

  #begin(): void {
    this.#pause = this.#clock.after(PAUSE_MS, () => {
      this.#pause = undefined;
      const waiting = this.#waiting;
      if (waiting === 0) return;
      this.#waiting = 0;
      this.#log.warning(
        waiting === 1 ? this.#last : `${waiting} more objects cannot be used; the last one: ${this.#last}`,
      );
      this.#begin();
    });
  }
}
