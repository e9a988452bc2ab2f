import type { Clock } from "../../plugin/index.ts";
import type { RequestRecorder } from "./request-metrics.ts";

/**
 * Durations of queries that arrived together and were answered at once. Their replies leave together, so that one reading of the clock
 * behind the last serves them all; one for each would cost more than the answers themselves.
 */
export class AnsweredTogether {
  readonly #clock: Clock;
  readonly #recorders: RequestRecorder[] = [];
  #receivedAt = 0;
  #closeScheduled = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param receivedAt `Clock.now()` at the query's arrival: who has the same came together */
  add(recorder: RequestRecorder, receivedAt: number): void {
    if (receivedAt !== this.#receivedAt) this.#startGroup(receivedAt);
    if (recorder.untimed++ === 0) this.#recorders.push(recorder);
  }

  /** Whether the duration of a query that arrived then is still to be recorded. */
  awaits(receivedAt: number): boolean {
    return this.#recorders.length > 0 && receivedAt === this.#receivedAt;
  }

  /** Records the durations of all that were added. */
  close(): void {
    if (this.#recorders.length > 0) this.#record(this.#clock.now());
  }

  #startGroup(receivedAt: number): void {
    if (this.#recorders.length > 0) {
      // The next ones are taken when those before them have been answered. An internal lookup brings an earlier time along.
      this.#record(receivedAt > this.#receivedAt ? receivedAt : this.#clock.now());
    }
    this.#receivedAt = receivedAt;
    if (this.#closeScheduled) return;
    this.#closeScheduled = true;
    // When what has come is answered and sent: what comes after is not theirs. An immediate would have the event loop look for events
    // once more, which costs single queries as much as their answer.
    process.nextTick(this.#endTurn);
  }

  readonly #endTurn = (): void => {
    this.#closeScheduled = false;
    this.close();
    // Who is added in the next turn begins a group of that turn, whatever the time.
    this.#receivedAt = Number.NaN;
  };

  #record(now: number): void {
    for (const recorder of this.#recorders) {
      recorder.recordDuration(now - this.#receivedAt, recorder.untimed);
      recorder.untimed = 0;
      recorder.exemplifyWaiting(now - this.#receivedAt);
    }
    this.#recorders.length = 0;
  }
}
