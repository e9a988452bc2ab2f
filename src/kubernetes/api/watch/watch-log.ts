/** Says in the log when a watch is lost and found, what is awaited and why it fails, and does not repeat itself. */

import type { Logger } from "../../../lib/logging/log.ts";
import type { Clock } from "../../../lib/time/clock.ts";
import { formatGoDuration } from "../../../lib/time/duration.ts";
import { ApiStatusError, explainFailure, type RequestSubject } from "../access/api-error.ts";

/** A trouble that lasts is mentioned again after so long; troubles that alternate each by itself. */
const REPEAT_MS = 60_000;
/** Troubles that are known apart. Servers find ever new words, if they number their requests. */
const MAX_TROUBLES = 16;

export interface WatchLogOptions {
  readonly log: Logger;
  readonly clock: Clock;
  /** Milliseconds since the API was last heard of about this kind; undefined before it is listed. */
  readonly age: () => number | undefined;
}

export class WatchLog {
  readonly #options: WatchLogOptions;
  #lastWords = "";
  /** When each trouble was mentioned last. */
  readonly #saidAt = new Map<string, number>();
  /** Whether the log says that the watch is lost. */
  #isLossSaid = false;
  #lostAt: number | undefined;
  /** When the API was last heard of before the watch was lost. */
  #heardAt = 0;
  #wasWatching = false;

  constructor(options: WatchLogOptions) {
    this.#options = options;
  }

  /** Why it does not work at present; undefined while it does. */
  get trouble(): string | undefined {
    return this.#lostAt === undefined ? undefined : this.#lastWords;
  }

  /** How the watch stands, and how old what is known is, in whole seconds: `watching, age 3s`. */
  get state(): string {
    const { age } = this.#options;
    const known = age();
    if (known === undefined)
      return this.#lostAt === undefined
        ? "being listed"
        : `not listed, failing since ${this.#lostSince(this.#lostAt)}: ${this.#lastWords}`;
    const old = `age ${Math.floor(known / 1000)}s`;
    if (this.#lostAt !== undefined)
      return `lost since ${this.#lostSince(this.#lostAt)}, ${old}: ${this.#lastWords}`;
    return `${this.#wasWatching ? "watching" : "synced"}, ${old}`;
  }

  failed(error: unknown, subject: RequestSubject, delayMs: number): void {
    const { log, clock, age } = this.#options;
    const now = clock.now();
    const words = explainFailure(error, subject);
    const known = age() ?? 0;
    if (this.#lostAt === undefined) {
      this.#lostAt = now;
      this.#heardAt = now - known;
    }
    // What an operator has decided to do without is mentioned once.
    const isLackExpected =
      subject.remedy !== undefined && error instanceof ApiStatusError && error.code === 404;
    const isLasting = isLackExpected && words === this.#lastWords;
    this.#lastWords = words;
    const saidAt = this.#saidAt.get(words);
    if (isLasting || (saidAt !== undefined && now - saidAt < REPEAT_MS)) return;
    this.#said(words, now);
    const next = delayMs === 0 ? "next try at once" : `next try in ${duration(delayMs)}`;
    log.warning(
      this.#wasWatching
        ? `lost the watch on ${subject.resource}: ${words}; answering from what is known, ${duration(known)} old, ${next}`
        : `cannot ${subject.verb} ${subject.resource}: ${words}; ${next}`,
    );
  }

  watching(resource: string): void {
    const { log, clock } = this.#options;
    const lostAt = this.#lostAt;
    this.#lostAt = undefined;
    this.#lastWords = "";
    const isLossSaid = this.#isLossSaid;
    this.#isLossSaid = false;
    if (lostAt !== undefined && isLossSaid) {
      const now = clock.now();
      const after = duration(now - lostAt);
      log.info(
        this.#wasWatching
          ? `watching again: ${resource}, after ${after}; what was known had grown ${duration(now - this.#heardAt)} old`
          : `watching: ${resource}, after ${after}`,
      );
    }
    this.#wasWatching = true;
  }

  #said(words: string, now: number): void {
    this.#isLossSaid = true;
    this.#saidAt.delete(words);
    const [oldest] = this.#saidAt.keys();
    if (oldest !== undefined && this.#saidAt.size >= MAX_TROUBLES) this.#saidAt.delete(oldest);
    this.#saidAt.set(words, now);
  }

  /** To the second. */
  #lostSince(lostAt: number): string {
    const { clock } = this.#options;
    const since = new Date(clock.wallTime() - (clock.now() - lostAt));
    return since.toISOString().replace(/\.\d+Z$/, "Z");
  }
}

function duration(milliseconds: number): string {
  return formatGoDuration(Math.round(milliseconds));
}
