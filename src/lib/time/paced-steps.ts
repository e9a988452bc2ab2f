/**
 * Runs bursts of small steps one after the other: as many in one event-loop turn as its share allows, including the
 * promises that each step settles.
 */
import type { Clock } from "./clock.ts";

/** One step. Promises that it settles count as part of it. */
export interface PacedStep {
  run(): void;
  /** The next step: used by {@link PacedSteps} only. */
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

  /**
   * Runs a step after the waiting ones, and not before the caller has returned. It must not be added again before it
   * has run.
   */
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
      // Removed after its own run, so that steps that it adds wait behind it.
      this.#first = step.following;
      step.following = undefined;
      if (this.#first === undefined) this.#last = undefined;
      else if (this.#clock.now() - this.#began < this.#share) queueMicrotask(this.#behindMicrotasks);
      else setImmediate(this.#turn);
    }
  };

  /** Ticks run once no microtask is left. */
  readonly #behindMicrotasks = (): void => process.nextTick(this.#step);
}
