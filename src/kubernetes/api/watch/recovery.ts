/**
 * What follows a failure of a list or a watch: whether to go on from the last revision or to list anew, in which way, and when. The
 * rules are client-go's, and stricter where it retries for ever: a server restored from a backup, for one, never reaches a revision of
 * the time before.
 */
import type { Clock } from "../../../lib/time/clock.ts";
import { ApiConnectionError, ApiSilenceError, ApiStatusError, CredentialError } from "../access/api-error.ts";
import type { ListWatchTimings } from "../client/list-watch-timings.ts";
import { Backoff } from "./backoff.ts";

/** What was under way when it failed. */
export interface Attempt {
  /** A list on its own, a list that is the beginning of a watch, or a watch. */
  readonly way: "list" | "streamedList" | "watch";
  /** Where a watch had come to; undefined of lists. */
  readonly revision: string | undefined;
  /** Whether the server had begun to answer, with success. */
  readonly hasBegun: boolean;
  /** Milliseconds that a watch ran. */
  readonly ranMs?: number;
}

export interface Recourse {
  /** Whether a watch cannot go on from its revision: everything is listed again. */
  readonly listsAnew: boolean;
  /** Milliseconds to wait. */
  readonly delayMs: number;
  /** Whether that happens to servers that are well, and is not worth a word. */
  readonly isOrdinary: boolean;
  /** Whether the server refused to begin a watch with a list, so that pages are read at once. */
  readonly readsPages?: true;
}

/** Failures of watches at one revision before everything is listed again. */
const FAILURES_UNTIL_RELIST = 3;
/** Watches at one revision that brought nothing before everything is listed again. */
const SILENCES_UNTIL_RELIST = 2;

/** So long may watches at one revision do nothing but break, bookmarks included: a server restored from a backup would never say that it is wrong. */
const BROKEN_UNTIL_RELIST_MS = 600_000;
/** Before a watch goes on that broke after it had run: up to twice as long, so that kinds that broke together come apart. */
const BROKEN_MS = 25;

type Trouble = "connection" | "credentials" | "load" | "other";

export class Recovery {
  readonly #clock: Clock;
  readonly #timings: ListWatchTimings;
  /** Failures of different kinds do not add up: an outage that ends in refused credentials is not a longer one. */
  readonly #backoffs: Readonly<Record<Trouble, Backoff>>;
  /** When the server is asked again for a list as the beginning of a watch. */
  #streamsFrom = Number.NEGATIVE_INFINITY;
  /** What lists ask for: any state that the server has at hand, one that is not older than what is known, or the latest of all. */
  #listRevision = ANY_REVISION;
  /** How often a revision was forgotten since a watch last went well. */
  #expiries = 0;
  /** Where watches failed last, and how often. */
  #revision: string | undefined;
  #failures = 0;
  #silences = 0;
  /** Since when watches at one revision have done nothing but break. */
  #brokenSince: number | undefined;
  readonly #random: () => number;

  /** @param random uniform in [0, 1) */
  constructor(clock: Clock, random: () => number, timings: ListWatchTimings) {
    this.#clock = clock;
    this.#timings = timings;
    this.#random = random;
    this.#backoffs = {
      connection: new Backoff(random),
      credentials: new Backoff(random),
      load: new Backoff(random),
      other: new Backoff(random),
    };
  }

  /** Whether to ask for a list as the beginning of a watch. */
  get streamsLists(): boolean {
    return this.#clock.now() >= this.#streamsFrom;
  }

  /** The `resourceVersion` that a list asks for (`NotOlderThan`, or any for "0"); empty for the latest state, which etcd is asked for. */
  get listRevision(): string {
    return this.#listRevision;
  }

  /** The server has never heard of a list as the beginning of a watch, and may pass over what it does not know. */
  neverStream(): void {
    this.#streamsFrom = Number.POSITIVE_INFINITY;
  }

  /** Another server, or the same in another version: nothing is known of what it can do. */
  streamAgain(): void {
    this.#streamsFrom = Number.NEGATIVE_INFINITY;
  }

  /** A watch ended after it had run for so long. */
  ranFor(ms: number): void {
    if (ms < this.#timings.healthMs) return;
    for (const backoff of Object.values(this.#backoffs)) backoff.recovered();
    this.#expiries = 0;
    this.#failures = 0;
  }

  /** A watch told of changes before it failed, or the server is well for others: long waits would make what is known older than it need be. */
  ease(): void {
    for (const backoff of Object.values(this.#backoffs)) backoff.ease();
  }

  /**
   * A watch ran its full time without a word. Of a quiet resource on a server without bookmarks that is nothing unusual.
   * @returns whether everything is to be listed again, to be sure
   */
  endedSilently(revision: string): boolean {
    this.#at(revision);
    if (++this.#silences < SILENCES_UNTIL_RELIST) return false;
    this.#listRevision = LATEST_REVISION;
    return true;
  }

  /** @param atLeastMs for how long not to ask again in any case */
  after(error: unknown, attempt: Attempt, atLeastMs?: number): Recourse {
    const isExpired = error instanceof ApiStatusError && error.isExpired;
    // The revision is forgotten, or one that the server has yet to reach.
    const isUnknown = isExpired || (error instanceof ApiStatusError && error.code === 504);
    if (attempt.way === "streamedList" && !isKept(error, attempt)) return this.#readPages(error, isUnknown);
    let listsAnew = false;
    const hasBroken = attempt.way === "watch" && this.#hasBroken(error, attempt);
    if (attempt.way !== "watch" || attempt.revision === undefined) {
      if (isUnknown) this.#listRevision = LATEST_REVISION;
    } else {
      listsAnew = isExpired || this.#isUseless(attempt.revision, error, attempt.hasBegun, hasBroken);
      if (listsAnew)
        this.#listRevision =
          isUnknown || error instanceof ApiSilenceError ? LATEST_REVISION : attempt.revision;
    }
    // That a revision is forgotten is the way of the world, and says that the server is well; that it is again and again is not.
    if (isExpired && this.#expiries++ === 0) return { listsAnew, delayMs: 0, isOrdinary: true };
    const askedForMs = error instanceof ApiStatusError ? error.retryAfterMs : undefined;
    const delayMs = hasBroken
      ? BROKEN_MS * (1 + this.#random())
      : this.#backoffs[troubleOf(error)].failed(atLeastMs ?? askedForMs);
    return { listsAnew, delayMs, isOrdinary: false };
  }

  /** client-go's rule: nearly whatever goes wrong with a streamed list, one in pages may still be had. */
  #readPages(error: unknown, isRevisionUnknown: boolean): Recourse {
    this.#streamsFrom = this.#clock.now() + this.#timings.streamAgainMs;
    if (isRevisionUnknown) this.#listRevision = LATEST_REVISION;
    const isRefusal = error instanceof ApiStatusError && (error.code === 400 || error.code === 422);
    // Still a failure: if nothing else works either, waits grow.
    if (!isRefusal) this.#backoffs[troubleOf(error)].failed();
    // An etcd before 3.5 makes the server answer 500. Whatever else it answers it answers to pages as well, and that is worth the word.
    if (error instanceof ApiStatusError && error.code === 500)
      return { listsAnew: false, delayMs: 0, isOrdinary: false, readsPages: true };
    const isOrdinary = error instanceof ApiStatusError || error instanceof ApiSilenceError;
    return { listsAnew: false, delayMs: 0, isOrdinary };
  }

  /** Whether watches from this revision have failed so often that it may be what is wrong. */
  #isUseless(revision: string, error: unknown, hasBegun: boolean, hasBroken: boolean): boolean {
    this.#at(revision);
    if (hasBroken) {
      const now = this.#clock.now();
      this.#brokenSince ??= now;
      return now - this.#brokenSince >= BROKEN_UNTIL_RELIST_MS;
    }
    if (error instanceof ApiSilenceError && ++this.#silences >= SILENCES_UNTIL_RELIST) return true;
    // An unanswered or postponed request says nothing about the revision.
    const isHeard = hasBegun || !isUnheard(error);
    return isHeard && ++this.#failures >= FAILURES_UNTIL_RELIST;
  }

  /** Whether the server took the revision, and the connection of the watch was lost later: that says nothing about the revision. */
  #hasBroken(error: unknown, { hasBegun, ranMs = 0 }: Attempt): boolean {
    return error instanceof ApiConnectionError && hasBegun && ranMs >= this.#timings.shortWatchMs / 2;
  }

  #at(revision: string): void {
    if (revision === this.#revision) return;
    this.#brokenSince = undefined;
    this.#revision = revision;
    this.#failures = 0;
    this.#silences = 0;
  }
}

/** Of the server's own choice, out of its memory: a whole fleet that starts does not burden etcd. */
const ANY_REVISION = "0";
const LATEST_REVISION = "";

/** Whether a streamed list is to be asked for again in the same way: what is wrong is not the way. */
function isKept(error: unknown, { hasBegun }: Attempt): boolean {
  if (error instanceof ApiStatusError && (error.code === 403 || error.code === 404)) return true;
  return !hasBegun && isUnheard(error);
}

/** Whether the server did not so much as look at the request. */
function isUnheard(error: unknown): boolean {
  return (
    error instanceof ApiConnectionError ||
    error instanceof CredentialError ||
    (error instanceof ApiStatusError && error.code === 429)
  );
}

function troubleOf(error: unknown): Trouble {
  if (error instanceof ApiConnectionError || error instanceof ApiSilenceError) return "connection";
  if (error instanceof CredentialError) return "credentials";
  if (!(error instanceof ApiStatusError)) return "other";
  if (error.code === 401) return "credentials";
  return error.code === 429 ? "load" : "other";
}
