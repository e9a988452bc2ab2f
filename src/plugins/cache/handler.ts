/** The cache between the server and the plugins that produce answers. */
import type { Name } from "../../dns/name.ts";
import { Flag, Opcode } from "../../dns/numbers.ts";
import { RecordType } from "../../dns/type-names.ts";
import { RareErrors } from "../../lib/logging/rare-errors.ts";
import { type Clock, type Next, type Outcome, type Query, Reply, type Site } from "../../plugin/index.ts";
import { loadPageRelease } from "../../runtime/memory-release.ts";
import { AnswerStore, type SharedAnswers } from "./answer-store.ts";
import { ChainAsker } from "./chain-asker.ts";
import { type CacheCounters, CacheMetrics, type Holding } from "./counters.ts";
import { EntryBasis } from "./entry-basis.ts";
import { COMPACT_EDNS, type EntryKey, KEPT_COMPACT, type KeptAnswer, WILDCARD_LABEL } from "./kept-answer.ts";
import { PendingQuery, wantsAuthenticData } from "./pending-query.ts";
import { answerTraits } from "./question-hash.ts";
import type { CacheSettings } from "./settings.ts";

export class CacheHandler {
  readonly store: AnswerStore;
  readonly #settings: CacheSettings;
  readonly #clock: Clock;
  readonly #asker: ChainAsker;
  readonly #metrics: CacheMetrics;
  readonly #basis: EntryBasis;
  readonly #forgetCollector: () => void;

  constructor(
    settings: CacheSettings,
    site: Pick<Site, "changingNames" | "clock" | "log" | "metrics" | "random">,
  ) {
    this.#settings = settings;
    this.#clock = site.clock;
    this.store = new AnswerStore(settings, site.random, site.clock, site.changingNames);
    this.#asker = new ChainAsker(settings, this.store, site.clock, site.log);
    this.#metrics = new CacheMetrics(site.metrics, settings.zones.toString());
    const errors = new RareErrors(site.clock, (error) => site.log.error(error.message));
    this.store.onEmptied((reason) => {
      this.#metrics.emptied.increment();
      errors.note(new Error(`all cached answers were dropped because memory was damaged: ${reason.message}`));
    });
    this.#basis = new EntryBasis(this.store, this.#metrics);
    this.#forgetCollector = site.metrics.onCollect(() =>
      this.#metrics.setHoldings(this.store.success, this.store.denial),
    );
  }

  handle(query: Query, next: Next): Outcome | Promise<Outcome> {
    if (query.opcode !== Opcode.QUERY) return next(query);
    const traits = answerTraits(query);
    const hash = this.store.hash(query, traits);
    const now = this.#timeFor(query);
    const entry = this.store.find(hash, traits, query, now);
    // The cache only holds names of its own zones, so a hit need not check them.
    if (entry === undefined) return this.#miss(query, next, { hash, traits });
    const counters = this.#metrics.of(query);
    if (query.trace?.leavesNoMark === true) return this.#answerUnseen(entry, query, next, now, counters);
    counters.requests.increment();
    (entry.denial ? counters.denialHits : counters.successHits).increment();
    if (now >= entry.expiresAt) return this.#answerStale(entry.held(), query, next, now, counters);
    if (entry.traits === traits && this.#isToBePrefetched(entry, now)) {
      // The background query may cause other lookups before this query is answered.
      const held = entry.held();
      this.#renew(held, query, next, now, counters);
      return this.#keptReply(held, query, now);
    }
    const reply = this.#keptReply(entry, query, now);
    // With `prefetch` hits must be counted one by one, and an answer for other flags gives way to one with the
    // query's own flags.
    if (this.#settings.prefetch === undefined && entry.traits === traits)
      reply.basis = this.#basis.of(entry, now, this.#settings.keepTtl);
    return reply;
  }

  #keptReply(entry: KeptAnswer, query: Query, now: number): Reply {
    const remaining = entry.remainingTtl(now);
    query.trace?.note(`cached ${entry.ttl - remaining} s ago; valid for ${remaining} s more`, {
      age: entry.ttl - remaining,
      ttl: remaining,
    });
    return replyFrom(entry, query, this.#settings.keepTtl ? entry.ttl : remaining);
  }

  /**
   * Drops the answers for these names and for all names below them, and does not store answers for them that are in
   * progress. @returns how many answers were dropped
   */
  drop(names: readonly Name[]): number {
    this.#asker.outdate(names);
    return this.store.dropAtOrBelow(names);
  }

  /** Returns what the caches of other threads need to {@link join}. */
  share(): SharedAnswers {
    return this.store.share();
  }

  /** Shares the answers of another thread from now on. */
  join(shared: SharedAnswers): void {
    this.store.join(shared);
  }

  async stop(): Promise<void> {
    this.#asker.stop();
    this.store.stop();
    this.#forgetCollector();
    this.#metrics.setHoldings(NOTHING, NOTHING);
    const releasePages = await loadPageRelease();
    if (releasePages !== undefined) this.store.release(releasePages);
  }

  /**
   * Reading the clock takes as long as the rest of a hit. A query fresh from its listener carries a recent timestamp.
   */
  #timeFor(query: Query): number {
    return query.root === query ? query.receivedAt : this.#clock.turnTime();
  }

  #miss(query: Query, next: Next, key: EntryKey): Outcome | Promise<Outcome> {
    if (isTransfer(query.type) || this.#settings.zones.matchQuery(query) === undefined) return next(query);
    const counters = this.#metrics.of(query);
    query.trace?.note("not in the cache");
    if (query.trace?.leavesNoMark === true)
      return this.#asker.answerUnseen(PendingQuery.forClient(query, next, key, counters));
    counters.requests.increment();
    counters.misses.increment();
    return this.#asker.answer(PendingQuery.forClient(query, next, key, counters));
  }

  /** The answer that a client would get now, without side effects: no hit is counted, and no refresh starts. */
  #answerUnseen(
    entry: KeptAnswer,
    query: Query,
    next: Next,
    now: number,
    counters: CacheCounters,
  ): Outcome | Promise<Outcome> {
    const held = entry.held();
    const pending = PendingQuery.forClient(query, next, held, counters);
    if (now < entry.expiresAt) {
      const reply = this.#keptReply(held, query, now);
      return this.#asker.lookBehind(pending).then(() => reply);
    }
    const expired = Math.floor((now - entry.expiresAt) / 1000);
    const isVerified = this.#settings.stale?.verify === true && now >= this.#retryAt(entry);
    query.trace?.note(
      `expired ${expired} s ago; ${isVerified ? "a fresh answer is requested first" : "served stale"}`,
      { stale: true, expired },
    );
    const stale = () => replyFrom(held, query, this.#settings.stale?.responseTtl ?? 0);
    if (!isVerified) return this.#asker.lookBehind(pending).then(stale);
    const fresh = this.#asker.answerUnseen(pending);
    const chosen = (outcome: Outcome) => (outcome.kind === "reply" ? outcome : stale());
    return fresh instanceof Promise ? fresh.then(chosen) : chosen(fresh);
  }

  #answerStale(
    entry: KeptAnswer,
    query: Query,
    next: Next,
    now: number,
    counters: CacheCounters,
  ): Outcome | Promise<Outcome> {
    const verify = this.#settings.stale?.verify === true;
    if (!verify) this.#renew(entry, query, next, now, counters);
    if (!verify || now < this.#retryAt(entry)) return this.#staleReply(entry, query, counters);
    const fresh = this.#asker.verify(PendingQuery.forClient(query, next, entry, counters), entry);
    if (!(fresh instanceof Promise)) return fresh ?? this.#staleReply(entry, query, counters);
    return fresh.then((reply) => reply ?? this.#staleReply(entry, query, counters));
  }

  #staleReply(entry: KeptAnswer, query: Query, counters: CacheCounters): Reply {
    counters.servedStale.increment();
    query.trace?.note("expired; served stale", { stale: true });
    return replyFrom(entry, query, this.#settings.stale?.responseTtl ?? 0);
  }

  #isToBePrefetched(entry: KeptAnswer, now: number): boolean {
    const { prefetch } = this.#settings;
    if (prefetch === undefined) return false;
    const hits = this.store.slabOf(entry).countHit(entry, now, prefetch.windowMs);
    return (
      hits >= prefetch.amount && entry.remainingTtl(now) <= Math.ceil((prefetch.percentage * entry.ttl) / 100)
    );
  }

  #retryAt(entry: KeptAnswer): number {
    return this.store.slabOf(entry).retryAt(entry);
  }

  #renew(entry: KeptAnswer, query: Query, next: Next, now: number, counters: CacheCounters): void {
    if (this.store.slabOf(entry).isRefreshing(entry) || now < this.#retryAt(entry)) return;
    const pending = PendingQuery.inBackground(query, next, entry, counters, this.#clock.turnTime());
    if (pending === undefined) return;
    counters.prefetches.increment();
    query.trace?.note("requests a fresh answer in the background");
    this.#asker.renew(pending, entry);
  }
}

const NOTHING: Holding = { size: 0, octetsTouched: 0 };

function replyFrom(entry: KeptAnswer, query: Query, ttl: number): Reply {
  if (entry.wildcard !== undefined) query.setMetadata(WILDCARD_LABEL, entry.wildcard);
  const flags = wantsAuthenticData(query, entry.traits) ? entry.flags : entry.flags & ~Flag.AD;
  const reply = Reply.fromEncoded(query, entry.sections, entry.rcode, (flags & ~KEPT_COMPACT) | Flag.AA, ttl);
  if ((flags & KEPT_COMPACT) !== 0) reply.edns = COMPACT_EDNS;
  return reply;
}

function isTransfer(type: number): boolean {
  return type === RecordType.AXFR || type === RecordType.IXFR;
}
