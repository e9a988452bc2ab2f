/** Asks the rest of the chain what is not kept, each question once at a time, and keeps what comes back. */

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

  /** The answer to a question that nothing is kept for. */
  answer(pending: PendingQuery): Outcome | Promise<Outcome> {
    return this.#answer(pending, MAX_JOINS);
  }

  /** As {@link answer}, for a query that is to leave no mark: nothing is kept of it, and nobody waits for it. */
  answerUnseen(pending: PendingQuery): Outcome | Promise<Outcome> {
    const land = (outcome: Outcome) =>
      ownOutcome(this.#land(outcome, pending, undefined, undefined), pending);
    const outcome = pending.next(pending.asked);
    return outcome instanceof Promise ? outcome.then(land) : land(outcome);
  }

  /**
   * A better answer than an expired one, if there is one in time.
   * @param entry the expired one; what comes late still takes its place
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

  /** Renews an entry while nobody waits. One at a time for each entry, and not soon after a failure. */
  renew(pending: PendingQuery, entry: KeptAnswer): void {
    const slab = this.#store.slabOf(entry);
    const renewed = ({ outcome }: Landing): void => {
      slab.setRefreshing(entry, false);
      // No client is there to be told of it, and so no other plugin hears of it.
      if (outcome.kind === "failed" && outcome.error instanceof UnusableReplyError)
        this.#log.error(outcome.error.message);
    };
    slab.setRefreshing(entry, true);
    const landing = this.#ask(pending, entry);
    if (landing instanceof Promise) void landing.then(renewed);
    else renewed(landing);
  }

  /** What is on its way for these names and those below them is outdated: it is given to those who wait, but not kept. */
  outdate(names: readonly Name[]): void {
    this.#flights.outdate(names);
  }

  /** Nothing that comes back from now on is kept. */
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
    pending.asked.trace?.note("waits for the answer to an equal question that is on its way");
    return this.#waitFor<Outcome>(
      flight,
      pending.asked.deadline - this.#clock.turnTime(),
      (landed) => {
        if (pending.asked.root.isAbandoned) return DROPPED;
        // The leader's client was given up, and with it the question: one of those who joined asks it anew, for all.
        if (flight.asked.root.isAbandoned) return this.#answer(pending, joins);
        if (isForLeaderAlone(landed, flight, pending)) return this.#answer(pending, 0);
        // A second leader that runs out of time has shown that the upstream is slow, not that its client was in a hurry.
        if (joins > 1 && this.#ranOutOfTime(landed, flight)) return this.#answer(pending, joins - 1);
        return sharedOutcome(landed, pending);
      },
      () => pending.asked.fail(Rcode.SERVFAIL, new DeadlineExceededError(pending)),
    );
  }

  #joinable(pending: PendingQuery): Flight | undefined {
    // Where answers are not to be kept, each query is to have an answer of its own.
    if (this.#settings.success.except.matchQuery(pending.asked) !== undefined) return undefined;
    return this.#flights.joinable(pending);
  }

  /** Never throws nor rejects, as far as `next` keeps its word. */
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
      // Those who wait must hear of it, whoever made the reply.
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

  /** May the reply take the place of that entry? */
  #succeeds(verdict: Verdict | undefined, entry: KeptAnswer): boolean {
    if (verdict === undefined || !verdict.sound) return false;
    return verdict.answers || !entry.answers || this.#settings.stale?.preferPositive !== true;
  }

  #successor(landing: Landing, entry: KeptAnswer, pending: PendingQuery, own: boolean): Reply | undefined {
    if (!this.#succeeds(landing.verdict, entry)) return undefined;
    const outcome = own ? ownOutcome(landing, pending) : sharedOutcome(landing, pending);
    return outcome.kind === "reply" ? outcome : undefined;
  }

  /** Milliseconds that a client with an expired answer at hand waits for a better one. */
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

  #within<T>(
    ms: number,
    landed: Promise<Landing>,
    onLanded: (landing: Landing) => T | Promise<T>,
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

/** The client's deadline passed while it waited for the answer to another one's question. */
export class DeadlineExceededError extends Error {
  override readonly name = "DeadlineExceededError";
  readonly question: string;

  constructor({ asked }: PendingQuery) {
    super(`deadline exceeded while an equal question for ${asked.name} was on its way`);
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

/** How often a query waits for others before it asks for itself. */
const MAX_JOINS = 2;

function noteKeeping(trace: Trace, { storable, ttl, sameQuestion }: Verdict, isSeen: boolean): void {
  if (!storable || !sameQuestion || ttl <= 0) trace.note("the answer is none to be kept");
  else if (isSeen) trace.note(`keeps the answer for ${ttl} s`, { keeps: ttl });
  else trace.note(`would keep the answer for ${ttl} s, had a client asked`, { keeps: ttl });
}

function failed(outcome: Outcome): Landing {
  return { outcome, verdict: undefined, template: undefined };
}

/**
 * Was that decided for one query, not for its question? A dropped query, a reply to a question that nobody asked, and an error that may be
 * about EDNS options that the other query has not.
 */
function isForLeaderAlone({ outcome, verdict }: Landing, { asked }: Flight, pending: PendingQuery): boolean {
  if (outcome.kind !== "reply") return outcome.kind === "dropped";
  return verdict?.sameQuestion !== true || mayFailApart(outcome, asked, pending.asked);
}

/** What the query that was asked gets. */
function ownOutcome({ outcome }: Landing, pending: AwaitedQuery): Outcome {
  if (outcome.kind === "reply" && !pending.wantsAuthenticData) outcome.setFlag(Flag.AD, false);
  return outcome;
}

/** What a query that waited gets: a shell of its own. */
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
