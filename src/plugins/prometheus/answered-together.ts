import type { Clock } from "../../plugin/index.ts";
import type { RequestRecorder } from "./request-metrics.ts";

/**
 * Durations of queries that arrived together and were answered at once. Their replies leave together, so one reading
 * of the clock after the last serves them all; one for each query would cost more than the answers themselves.
 */
export class AnsweredTogether {
  readonly #clock: Clock;
  readonly #recorders: RequestRecorder[] = [];
  #receivedAt = 0;
  #closeScheduled = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param receivedAt `Clock.now()` at the query's arrival: the same for queries that arrived together */
  add(recorder: RequestRecorder, receivedAt: number): void {
    if (receivedAt !== this.#receivedAt) this.#startGroup(receivedAt);
    if (recorder.untimed++ === 0) this.#recorders.push(recorder);
  }

  /** Whether the duration of a query that arrived at this time is still to be recorded. */
  awaits(receivedAt: number): boolean {
    return this.#recorders.length > 0 && receivedAt === this.#receivedAt;
  }

  /** Records the durations of all added queries. */
  close(): void {
    if (this.#recorders.length > 0) this.#record(this.#clock.now());
  }

  #startGroup(receivedAt: number): void {
    if (this.#recorders.length > 0) {
      // A new group arrives after the previous one was answered. An internal lookup has an earlier arrival time.
      this.#record(receivedAt > this.#receivedAt ? receivedAt : this.#clock.now());
    }
    this.#receivedAt = receivedAt;
    if (this.#closeScheduled) return;
    this.#closeScheduled = true;
    // Runs when the current queries are answered and sent, before later ones arrive. An immediate would make the
    // event loop poll once more, which costs a single query as much as its answer.
    process.nextTick(this.#endTurn);
  }

  readonly #endTurn = (): void => {
    this.#closeScheduled = false;
    this.close();
    // A query added in the next turn begins a new group, whatever its time.
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
