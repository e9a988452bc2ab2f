/** Sends cache misses to the rest of the chain, each question once at a time, and stores the replies. */

import type { Name } from "../../dns/name.ts";
import { Flag, Rcode } from "../../dns/numbers.ts";
import { LinkedList } from "../../lib/collections/linked-list.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import {
  type Clock,
  DROPPED,
  Failure,
  type Logger,
  type Outcome,
  type Reply,
  type Timer,
} from "../../plugin/index.ts";
import type { Trace } from "../../plugin/query/trace.ts";
import type { AnswerStore } from "./answer-store.ts";
import { type Flight, type FlightEnd, FlightTable, type Landing } from "./flights.ts";
import { COMPACT_EDNS, type KeptAnswer } from "./kept-answer.ts";
import type { AwaitedQuery, PendingQuery } from "./pending-query.ts";
import { mayFailApart } from "./query-options.ts";
import type { CacheSettings } from "./settings.ts";
import { judge, type Verdict } from "./verdict.ts";

export class ChainAsker implements FlightEnd {
  readonly #settings: CacheSettings;
  readonly #store: AnswerStore;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #flights = new FlightTable();
  readonly #timers = new LinkedList<Timer>();
  #stopped = false;

  constructor(settings: CacheSettings, store: AnswerStore, clock: Clock, log: Logger) {
    this.#settings = settings;
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
  }

  /** Answers a question that is not in the cache. */
  answer(pending: PendingQuery): Outcome | Promise<Outcome> {
    return this.#answer(pending, MAX_JOINS);
  }

  /** Like {@link answer}, but without side effects: the reply is not stored, and no query waits for it. */
  answerUnseen(pending: PendingQuery): Outcome | Promise<Outcome> {
    const land = (outcome: Outcome) =>
      ownOutcome(this.#land(outcome, pending, undefined, undefined), pending);
    const outcome = pending.next(pending.asked);
    return outcome instanceof Promise ? outcome.then(land) : land(outcome);
  }

  /**
   * Shows in the trace what the plugins behind the cache would answer now, in place of a cached answer. Has no other
   * effect, and never rejects.
   */
  async lookBehind(pending: PendingQuery): Promise<void> {
    const { asked } = pending;
    asked.trace?.aside?.("behind the cache: what would be answered now, without the cached answer");
    const outcome = pending.next(asked);
    if (!(outcome instanceof Promise)) return letGo(outcome);
    const patience = Math.min(MOST_BEHIND, asked.deadline - this.#clock.turnTime());
    // An answer that comes later is not waited for, but its memory returns nevertheless.
    await this.#within(
      patience,
      outcome.then(letGo),
      () => undefined,
      () => undefined,
    );
  }

  /**
   * Tries to get a fresh answer in time to replace an expired one. @param entry the expired entry; a late answer
   * still replaces it
   */
  verify(pending: PendingQuery, entry: KeptAnswer): Reply | undefined | Promise<Reply | undefined> {
    const flight = this.#joinable(pending);
    if (flight === undefined) {
      const landing = this.#ask(pending, entry);
      if (!(landing instanceof Promise)) return this.#successor(landing, entry, pending, true);
      return this.#within(
        this.#patience(pending),
        landing,
        (landed) => this.#successor(landed, entry, pending, true),
        () => undefined,
      );
    }
    return this.#waitFor(
      flight,
      this.#patience(pending),
      (landed) => this.#successor(landed, entry, pending, false),
      () => undefined,
    );
  }

  /** Refreshes an entry in the background. One refresh at a time for each entry, and not soon after a failure. */
  renew(pending: PendingQuery, entry: KeptAnswer): void {
    const slab = this.#store.slabOf(entry);
    const renewed = ({ outcome }: Landing): void => {
      slab.setRefreshing(entry, false);
      // There is no client to answer, so no other plugin sees this error.
      if (outcome.kind === "failed" && outcome.error instanceof UnusableReplyError)
        this.#log.error(outcome.error.message);
    };
    slab.setRefreshing(entry, true);
    const landing = this.#ask(pending, entry);
    if (landing instanceof Promise) void landing.then(renewed);
    else renewed(landing);
  }

  /**
   * Marks the queries in progress for these names and the names below as outdated: waiting clients get the answers,
   * but these are not stored.
   */
  outdate(names: readonly Name[]): void {
    this.#flights.outdate(names);
  }

  /** Stops storing replies. */
  stop(): void {
    this.#stopped = true;
    for (const timer of this.#timers) timer.cancel();
  }

  arrived(outcome: Outcome, flight: Flight): Outcome {
    return ownOutcome(this.#arrive(outcome, undefined, flight), flight);
  }

  #answer(pending: PendingQuery, joins: number): Outcome | Promise<Outcome> {
    const flight = joins > 0 ? this.#joinable(pending) : undefined;
    if (flight === undefined) {
      const outcome = pending.next(pending.asked);
      if (!(outcome instanceof Promise))
        return ownOutcome(this.#land(outcome, pending, undefined, undefined), pending);
      const begun = this.#flights.add(pending.asked.root, pending, this);
      begun.settleWith(outcome);
      return begun;
    }
    pending.asked.trace?.note("waits for an identical query already sent upstream");
    return this.#waitFor<Outcome>(
      flight,
      pending.asked.deadline - this.#clock.turnTime(),
      (landed) => {
        if (pending.asked.root.isAbandoned) return DROPPED;
        // The leader's client gave up, and its question ended with it: one of the waiting queries asks again, for all
        // of them.
        if (flight.asked.root.isAbandoned) return this.#answer(pending, joins);
        if (isForLeaderAlone(landed, flight, pending)) return this.#answer(pending, 0);
        // A second leader that times out shows that the upstream is slow, not that its client was in a hurry.
        if (joins > 1 && this.#ranOutOfTime(landed, flight)) return this.#answer(pending, joins - 1);
        return sharedOutcome(landed, pending);
      },
      () => pending.asked.fail(Rcode.SERVFAIL, new DeadlineExceededError(pending)),
    );
  }

  #joinable(pending: PendingQuery): Flight | undefined {
    // Where answers are not cached, each query gets an answer of its own.
    if (this.#settings.success.except.matchQuery(pending.asked) !== undefined) return undefined;
    return this.#flights.joinable(pending);
  }

  /** Neither throws nor rejects, as long as `next` keeps its contract. */
  #ask(pending: PendingQuery, predecessor: KeptAnswer | undefined): Landing | Promise<Landing> {
    const outcome = pending.next(pending.asked);
    if (!(outcome instanceof Promise)) return this.#land(outcome, pending, predecessor, undefined);
    const flight = this.#flights.add(pending.asked.root, pending, this);
    return outcome.then((settled) => this.#arrive(settled, predecessor, flight));
  }

  #arrive(outcome: Outcome, predecessor: KeptAnswer | undefined, flight: Flight): Landing {
    const landing = this.#land(outcome, flight, predecessor, flight);
    this.#flights.remove(flight);
    flight.land(landing);
    return landing;
  }

  #land(
    outcome: Outcome,
    pending: AwaitedQuery,
    predecessor: KeptAnswer | undefined,
    flight: Flight | undefined,
  ): Landing {
    try {
      return this.#receive(outcome, pending, predecessor, flight);
    } catch (error) {
      // Waiting queries must get this error, whichever plugin made the reply.
      return failed(pending.asked.fail(Rcode.SERVFAIL, new UnusableReplyError(pending, error)));
    }
  }

  #receive(
    outcome: Outcome,
    pending: AwaitedQuery,
    predecessor: KeptAnswer | undefined,
    flight: Flight | undefined,
  ): Landing {
    const now = this.#clock.turnTime();
    const verdict =
      outcome.kind === "reply"
        ? judge(outcome, pending.asked, this.#settings, this.#clock.wallTime())
        : undefined;
    const succeeds = predecessor === undefined || this.#succeeds(verdict, predecessor);
    if (!succeeds) {
      const retryAt = now + (this.#settings.stale?.failureRecheckMs ?? 0);
      this.#store.slabOf(predecessor).setRetryAt(predecessor, retryAt);
    }
    if (outcome.kind !== "reply" || verdict === undefined) return failed(outcome);
    const isSeen = pending.asked.trace?.leavesNoMark !== true;
    const isOutdated = flight !== undefined && this.#flights.isOutdated(flight);
    if (succeeds && isSeen && !isOutdated && !this.#stopped && verdict.storable) {
      const mentioned = this.#store.mentionedIn(outcome, pending.asked);
      const isKept = mentioned !== undefined && !this.#flights.mentionsOutdated(flight, mentioned);
      if (isKept) this.#store.keep(pending, outcome, verdict, mentioned, now, predecessor);
    }
    if (pending.asked.trace !== undefined) noteKeeping(pending.asked.trace, verdict, isSeen);
    outcome.edns = outcome.edns?.compactOk === true ? COMPACT_EDNS : undefined;
    outcome.setUniformTtl(verdict.ttl);
    const template = flight !== undefined && flight.waiting > 0 ? outcome.forQuery(pending.asked) : undefined;
    return { outcome, verdict, template };
  }

  /** Whether the reply may replace the entry. */
  #succeeds(verdict: Verdict | undefined, entry: KeptAnswer): boolean {
    if (verdict === undefined || !verdict.sound) return false;
    return verdict.answers || !entry.answers || this.#settings.stale?.preferPositive !== true;
  }

  #successor(landing: Landing, entry: KeptAnswer, pending: PendingQuery, own: boolean): Reply | undefined {
    if (!this.#succeeds(landing.verdict, entry)) return undefined;
    const outcome = own ? ownOutcome(landing, pending) : sharedOutcome(landing, pending);
    return outcome.kind === "reply" ? outcome : undefined;
  }

  /** Milliseconds that a client waits for a fresh answer while an expired one is available. */
  #patience({ asked }: PendingQuery): number {
    const verifyTimeout = this.#settings.stale?.verifyTimeoutMs ?? Infinity;
    return Math.min(verifyTimeout, asked.deadline - this.#clock.turnTime());
  }

  #ranOutOfTime({ outcome }: Landing, flight: Flight): boolean {
    return outcome.kind === "failed" && this.#clock.turnTime() >= flight.asked.deadline;
  }

  async #waitFor<T>(
    flight: Flight,
    ms: number,
    onLanded: (landing: Landing) => T | Promise<T>,
    onTime: () => T,
  ): Promise<T> {
    this.#flights.enter(flight);
    try {
      return await this.#within(ms, flight.landed, onLanded, onTime);
    } finally {
      this.#flights.leave();
    }
  }

  #within<L, T>(
    ms: number,
    landed: Promise<L>,
    onLanded: (landing: L) => T | Promise<T>,
    onTime: () => T,
  ): Promise<T> {
    if (ms === Infinity) return landed.then(onLanded);
    return new Promise((resolve, reject) => {
      let late = false;
      const timer = this.#clock.after(ms, () => {
        late = true;
        this.#timers.remove(place);
        resolve(onTime());
      });
      const place = this.#timers.append(timer);
      landed
        .then((landing) => {
          if (late) return;
          timer.cancel();
          this.#timers.remove(place);
          resolve(onLanded(landing));
        })
        .catch(reject);
    });
  }
}

/** The client's deadline passed while it waited for the answer to an identical query. */
export class DeadlineExceededError extends Error {
  override readonly name = "DeadlineExceededError";
  readonly question: string;

  constructor({ asked }: PendingQuery) {
    super(`deadline exceeded while waiting for an identical query for ${asked.name} was on its way`);
    this.question = asked.name.toString();
  }
}

/** A plugin behind made a reply that cannot be encoded. */
export class UnusableReplyError extends Error {
  override readonly name = "UnusableReplyError";
  readonly question: string;

  constructor({ asked }: AwaitedQuery, cause: unknown) {
    super(`the reply for ${asked.name} cannot be used: ${messageOf(cause)}`, { cause });
    this.question = asked.name.toString();
  }
}

/** How many times a query waits for another before it is sent itself. */
const MAX_JOINS = 2;

/** Milliseconds for the plugins behind a cached answer. */
const MOST_BEHIND = 4_000;

function letGo(outcome: Outcome): void {
  if (outcome.kind === "reply") outcome.release();
}

function noteKeeping(trace: Trace, { storable, ttl, sameQuestion }: Verdict, isSeen: boolean): void {
  if (!storable || !sameQuestion || ttl <= 0) trace.note("the answer is not cacheable");
  else if (isSeen) trace.note(`caches the answer for ${ttl} s`, { keeps: ttl });
  else trace.note(`a client's query would have cached this answer for ${ttl} s`, { keeps: ttl });
}

function failed(outcome: Outcome): Landing {
  return { outcome, verdict: undefined, template: undefined };
}

/**
 * Whether an outcome is specific to the leader's query: a dropped query, a reply to a different question, or an error
 * that may be caused by EDNS options that the other query does not have.
 */
function isForLeaderAlone({ outcome, verdict }: Landing, { asked }: Flight, pending: PendingQuery): boolean {
  if (outcome.kind !== "reply") return outcome.kind === "dropped";
  return verdict?.sameQuestion !== true || mayFailApart(outcome, asked, pending.asked);
}

/** The outcome for the query that was sent. */
function ownOutcome({ outcome }: Landing, pending: AwaitedQuery): Outcome {
  if (outcome.kind === "reply" && !pending.wantsAuthenticData) outcome.setFlag(Flag.AD, false);
  return outcome;
}

/** The outcome for a query that waited: a reply object of its own around the shared records. */
function sharedOutcome({ outcome, template }: Landing, pending: PendingQuery): Outcome {
  if (template !== undefined) {
    const reply = template.forQuery(pending.asked);
    if (!pending.wantsAuthenticData) reply.setFlag(Flag.AD, false);
    return reply;
  }
  if (outcome.kind !== "failed") return outcome;
  const failure = new Failure(outcome.rcode, outcome.error);
  failure.plugin = outcome.plugin;
  return failure;
}
