/**
 * Shares the turns of the event loop among all answers of many messages, so that hundreds of them do not delay other
 * queries.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../../lib/time/clock.ts";

/** Milliseconds of each turn. */
const SHARE = 1;

export class StreamTurns {
  readonly #clock: Pick<Clock, "now">;
  /** One for each stream that has a message to make: at most as many as connections. */
  #waiting: (() => Promise<void>)[] = [];
  #isRunning = false;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /**
   * Makes a message in one of the next turns: each stream one per turn, in order of arrival, and all together within
   * the share of the turn.
   * @returns the result of `make`, or rejects as it does
   */
  run<T>(make: () => Promise<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#waiting.push(() => make().then(resolve, reject));
    if (!this.#isRunning) {
      this.#isRunning = true;
      void this.#serve();
    }
    return promise;
  }

  /** Never rejects, as no job does. */
  async #serve(): Promise<void> {
    while (this.#waiting.length > 0) {
      await nextTurn();
      const until = this.#clock.now() + SHARE;
      const jobs = this.#waiting;
      this.#waiting = [];
      let done = 0;
      while (done < jobs.length && (done === 0 || this.#clock.now() < until)) {
        const job = jobs[done++];
        // A job that waits for something else does not delay the others.
        if (job !== undefined) await Promise.race([job(), nextTurn()]);
      }
      this.#waiting = [...jobs.slice(done), ...this.#waiting];
    }
    this.#isRunning = false;
  }
}
