/** A clock whose timers cannot end the process: an error in a callback is reported, and the next one runs. */
import type { Clock, Timer } from "./clock.ts";

export class GuardedClock implements Clock {
  readonly #clock: Clock;
  readonly #onFault: (error: unknown) => void;

  /** @param onFault gets the exceptions of callbacks, and the rejections of the promises that they return */
  constructor(clock: Clock, onFault: (error: unknown) => void) {
    this.#clock = clock;
    this.#onFault = onFault;
  }

  now(): number {
    return this.#clock.now();
  }

  turnTime(): number {
    return this.#clock.turnTime();
  }

  wallTime(): number {
    return this.#clock.wallTime();
  }

  after(delayMs: number, callback: () => void): Timer {
    return this.#clock.after(delayMs, () => this.#run(callback));
  }

  every(intervalMs: number, callback: () => void): Timer {
    return this.#clock.every(intervalMs, () => this.#run(callback));
  }

  #run(callback: () => unknown): void {
    try {
      const result = callback();
      if (result instanceof Promise) result.catch(this.#onFault);
    } catch (error) {
      this.#onFault(error);
    }
  }
}
