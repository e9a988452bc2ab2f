/** Errors that may come by the thousand, told now and then: a network that takes nothing has each reply fail. */
import type { Clock } from "../time/clock.ts";

/** Milliseconds in which one is told. */
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

  /** Tells the first one at once, and then one in ten seconds, with how many there were meanwhile. */
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
