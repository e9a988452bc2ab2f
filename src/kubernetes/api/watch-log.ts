/** Says in the log when a watch is lost and found, what is awaited and why it fails, and does not repeat itself. */
import type { Clock } from "../../lib/clock.ts";
import { formatGoDuration } from "../../lib/duration.ts";
import type { Logger } from "../../lib/log.ts";
import { explainFailure, type RequestSubject } from "./api-error.ts";

/** A trouble that lasts is mentioned again after so long. */
const REPEAT_MS = 60_000;

export class WatchLog {
  readonly #log: Logger;
  readonly #clock: Clock;
  #lastWords = "";
  #saidAt = 0;
  #lostAt: number | undefined;
  #wasWatching = false;

  constructor(log: Logger, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Why it does not work at present; undefined while it does. */
  get trouble(): string | undefined {
    return this.#lostAt === undefined ? undefined : this.#lastWords;
  }

  failed(error: unknown, subject: RequestSubject, delayMs: number): void {
    const now = this.#clock.now();
    const words = explainFailure(error, subject);
    this.#lostAt ??= now;
    const isKnown = words === this.#lastWords && now - this.#saidAt < REPEAT_MS;
    this.#lastWords = words;
    if (isKnown) return;
    this.#saidAt = now;
    const next = `next try in ${formatGoDuration(Math.round(delayMs))}`;
    this.#log.warning(
      this.#wasWatching
        ? `lost the watch on ${subject.resource}: ${words}; answering from what is known, ${next}`
        : `cannot ${subject.verb} ${subject.resource}: ${words}; ${next}`,
    );
  }

  watching(resource: string): void {
    const lostAt = this.#lostAt;
    this.#lostAt = undefined;
    this.#lastWords = "";
    if (lostAt !== undefined) {
      const words = this.#wasWatching ? "watching again" : "watching";
      this.#log.info(
        `${words}: ${resource}, after ${formatGoDuration(Math.round(this.#clock.now() - lostAt))}`,
      );
    }
    this.#wasWatching = true;
  }
}
