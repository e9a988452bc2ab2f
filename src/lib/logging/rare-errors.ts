/** Limits the logging of frequent errors: on a broken network every reply fails. */
import type { Clock } from "../time/clock.ts";

/** Milliseconds between two lines. */
const INTERVAL = 10_000;

export class RareErrors {
  readonly #clock: Pick<Clock, "turnTime">;
  readonly #tell: (error: Error) => void;
  #toldAt = Number.NEGATIVE_INFINITY;
  #untold = 0;

  constructor(clock: Pick<Clock, "turnTime">, tell: (error: Error) => void) {
    this.#clock = clock;
    this.#tell = tell;
  }

  /** Reports the first error at once, then one every ten seconds, with the number of errors in between. */
  note(error: Error): void {
    const now = this.#clock.turnTime();
    if (now - this.#toldAt < INTERVAL) {
      this.#untold++;
      return;
    }
    const untold = this.#untold;
    this.#toldAt = now;
    this.#untold = 0;
    this.#tell(
      untold === 0
        ? error
        : new Error(`${error.message} (and ${untold} more errors since the last message)`, { cause: error }),
    );
  }
}
