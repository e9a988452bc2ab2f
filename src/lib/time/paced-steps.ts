/**
 * Work in small steps that come all at once, done one after the other: as much in a turn of the event loop as its share allows, with the promises that
 * each step settles.
 */
import type { Clock } from "./clock.ts";

/** One step. A promise that it settles counts as a part of it. */
export interface PacedStep {
  run(): void;
  /** The step behind it: for {@link PacedSteps} alone. */
  following: PacedStep | undefined;
}

export class PacedSteps {
  readonly #clock: Pick<Clock, "now">;
  readonly #share: number;
  #first: PacedStep | undefined;
  #last: PacedStep | undefined;
  #began = 0;

  /** @param share milliseconds of a turn */
  constructor(clock: Pick<Clock, "now">, share: number) {
    this.#clock = clock;
    this.#share = share;
  }

  /** Runs a step behind those that wait, not before the caller has returned. It must not be added again before it has run. */
  add(step: PacedStep): void {
    const last = this.#last;
    this.#last = step;
    if (last !== undefined) last.following = step;
    else {
      this.#first = step;
      setImmediate(this.#turn);
    }
  }

  readonly #turn = (): void => {
    this.#began = this.#clock.now();
    this.#step();
  };

  readonly #step = (): void => {
    const step = this.#first;
    if (step === undefined) return;
    try {
      step.run();
    } finally {
      // It is taken out behind its own run: what it adds waits behind it.
      this.#first = step.following;
      step.following = undefined;
      if (this.#first === undefined) this.#last = undefined;
      else if (this.#clock.now() - this.#began < this.#share) queueMicrotask(this.#behindMicrotasks);
      else setImmediate(this.#turn);
    }
  };

  /** Ticks come when no microtask is left. */
  readonly #behindMicrotasks = (): void => process.nextTick(this.#step);
}
