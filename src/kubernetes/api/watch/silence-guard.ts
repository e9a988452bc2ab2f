/** Gives up on a request of which nothing has been heard for too long, or that is no longer wanted. */
import type { Clock, Timer } from "../../../lib/time/clock.ts";
import { ApiSilenceError } from "../access/api-error.ts";

export class SilenceGuard {
  readonly #clock: Clock;
  #patienceMs: number;
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal;
  #timer: Timer;
  #heardAt: number;
  #otherwiseHeardAt: () => number | undefined = NEVER;

  constructor(clock: Clock, patienceMs: number, outer: AbortSignal) {
    this.#clock = clock;
    this.#patienceMs = patienceMs;
    this.#outer = outer;
    this.#heardAt = clock.now();
    this.#timer = clock.every(patienceMs / 4, () => this.#look());
    if (outer.aborted) this.#giveUp();
    else outer.addEventListener("abort", this.#giveUp);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Something came. */
  heard(): void {
    this.#heardAt = this.#clock.now();
  }

  /**
   * From now on silence may last so long.
   * @param otherwiseHeardAt when a sign of life came some other way, by the clock's `now`
   */
  wait(patienceMs: number, otherwiseHeardAt: () => number | undefined = NEVER): void {
    this.#patienceMs = patienceMs;
    this.#otherwiseHeardAt = otherwiseHeardAt;
    this.#timer.cancel();
    this.#timer = this.#clock.every(patienceMs / 4, () => this.#look());
  }

  /** Ends the guard, and the request if it is still going on. */
  stop(): void {
    this.#timer.cancel();
    this.#outer.removeEventListener("abort", this.#giveUp);
    this.#controller.abort(new Error("the request is over"));
  }

  #look(): void {
    const silence = this.#clock.now() - Math.max(this.#heardAt, this.#otherwiseHeardAt() ?? this.#heardAt);
    if (silence >= this.#patienceMs) this.#controller.abort(new ApiSilenceError(silence));
  }

  readonly #giveUp = (): void => {
    this.#controller.abort(this.#outer.reason);
  };
}

const NEVER = (): undefined => undefined;
