/** The cache for successes and the cache for denials side by side, and the choice between their answers for a query. */
import { isCompressible } from "../../dns/compression.ts";
import type { Name } from "../../dns/name.ts";
import { NameSet } from "../../dns/name-set.ts";
import { Flag } from "../../dns/numbers.ts";
import type { ChangingNames } from "../../plugin/contract/changing-names.ts";
import type { Clock, Query, Random, Reply, Timer } from "../../plugin/index.ts";
import { EntrySlab } from "./entry-slab.ts";
import { MAX_WILDCARD_OCTETS } from "./entry-writer.ts";
import { KEPT_COMPACT, type KeptAnswer, WILDCARD_LABEL } from "./kept-answer.ts";
import { MentionedNames } from "./mentioned-names.ts";
import type { AwaitedQuery } from "./pending-query.ts";
import { isTailored, mayBeAboutOptions } from "./query-options.ts";
import { QuestionHasher, TRAIT_NO_RD } from "./question-hash.ts";
import type { CacheSettings } from "./settings.ts";
import { cacheBounds } from "./slab-bounds.ts";
import { type SharedSlab, sharedTime } from "./slab-shape.ts";
import type { Verdict } from "./verdict.ts";

export class AnswerStore {
  success: EntrySlab;
  denial: EntrySlab;
  #hasher: QuestionHasher;
  readonly #secrets: readonly [number, number];
  readonly #settings: CacheSettings;
  readonly #clock: Clock;
  readonly #staleWindowMs: number;
  readonly #preferPositive: boolean;
  /** The names in the answer that was examined last. */
  readonly #mentioned: MentionedNames;
  /** Removals in progress, the oldest first. */
  readonly #forgetting: Forgetting[] = [];
  #timer: Timer | undefined;
  #mayGrow: (() => boolean) | undefined;
  #onEmptied: ((reason: Error) => void) | undefined;
  #epoch = 0;

  constructor(settings: CacheSettings, random: Random, clock: Clock, changing: ChangingNames) {
    this.#mentioned = new MentionedNames(changing);
    this.#settings = settings;
    this.#clock = clock;
    this.#staleWindowMs = settings.stale?.windowMs ?? 0;
    this.#preferPositive = settings.stale?.preferPositive ?? false;
    this.#secrets = [random.unpredictable(), random.unpredictable()];
    this.#hasher = new QuestionHasher(...this.#secrets);
    const bounds = cacheBounds(settings.success.capacity, settings.denial.capacity, settings.memory);
    this.success = new EntrySlab(bounds.success, false, random.unpredictable());
    this.denial = new EntrySlab(bounds.denial, true, random.unpredictable());
  }

  /** Changes whenever answers that are still in the slabs become invalid, or when the slabs are replaced. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Returns what other threads need to {@link join}. */
  share(): SharedAnswers {
    const start = this.#clockStart();
    return { secrets: this.#secrets, success: this.success.share(start), denial: this.denial.share(start) };
  }

  /** Replaces the slabs with those of another thread, which then share their answers. */
  join({ secrets, success, denial }: SharedAnswers): void {
    const start = this.#clockStart();
    this.#hasher = new QuestionHasher(...secrets);
    this.success = EntrySlab.join(success, false, start);
    this.denial = EntrySlab.join(denial, true, start);
    if (this.#mayGrow !== undefined) this.growOnlyWhile(this.#mayGrow);
    if (this.#onEmptied !== undefined) this.onEmptied(this.#onEmptied);
    // Answers found in the previous slabs are no longer kept up to date.
    this.#epoch = (this.#epoch + 1) | 0;
  }

  /** Lets the slabs grow only while `mayGrow` returns true. */
  growOnlyWhile(mayGrow: () => boolean): void {
    this.#mayGrow = mayGrow;
    for (const slab of [this.success, this.denial]) slab.growOnlyWhile(mayGrow);
  }

  /**
   * Sets the listener for the reason why all answers were dropped: damaged memory, or a thread that ended while it
   * wrote.
   */
  onEmptied(listener: (reason: Error) => void): void {
    this.#onEmptied = listener;
    for (const slab of [this.success, this.denial]) slab.onEmptied(listener);
  }

  #clockStart(): number {
    return sharedTime() - this.#clock.now();
  }

  hash(query: Query, traits: number): number {
    return this.#hasher.hash(query, traits);
  }

  /** The slab that an answer was found in. */
  slabOf({ denial }: KeptAnswer): EntrySlab {
    return denial ? this.denial : this.success;
  }

  /**
   * Finds the answer to give at `now`: a valid one, or with `serve_stale` an expired one. It holds until the next
   * call: see {@link KeptAnswer.held}.
   */
  find(hash: number, traits: number, query: Query, now: number): KeptAnswer | undefined {
    const found = this.#find(hash, traits, query, now);
    if (found !== undefined || (traits & TRAIT_NO_RD) === 0) return found;
    // An answer obtained by recursion also serves a query without RD. The reverse is not true: it might be a
    // referral.
    const recursive = traits & ~TRAIT_NO_RD;
    const other = this.#find(this.hash(query, recursive), recursive, query, now);
    return other !== undefined && now < other.expiresAt ? other : undefined;
  }

  #find(hash: number, traits: number, query: Query, now: number): KeptAnswer | undefined {
    const denial = this.#usable(this.denial, hash, traits, query, now);
    const success = this.#usable(this.success, hash, traits, query, now);
    if (denial < 0 && success < 0) return undefined;
    const slab = denial < 0 || (success >= 0 && this.denial.isError(denial)) ? this.success : this.denial;
    const kept = slab.read(slab === this.success ? success : denial);
    // Another thread may have replaced the entry since it was judged.
    return kept !== undefined && this.#isGood(kept.expiresAt, kept.error, now) ? kept : undefined;
  }

  /**
   * The names that an answer depends on besides the question's, as far as they can change. They hold until the next
   * call. @returns `undefined` where there are too many names for the answer to be cached
   */
  mentionedIn(reply: Reply, asked: Query): MentionedNames | undefined {
    return this.#mentioned.read(reply.sections, asked) ? this.#mentioned : undefined;
  }

  /**
   * Stores the reply of the rest of the chain, if it is cacheable. @param mentioned what {@link mentionedIn} just
   * found in the reply @param predecessor the entry that this reply renews
   */
  keep(
    pending: AwaitedQuery,
    reply: Reply,
    verdict: Verdict,
    mentioned: MentionedNames,
    now: number,
    predecessor: KeptAnswer | undefined,
  ): void {
    const { asked, hash, traits, counters } = pending;
    if (!verdict.storable) return;
    if (!verdict.sameQuestion) {
      counters.drops.increment();
      return;
    }
    if (verdict.ttl <= 0) return;
    const { except } = verdict.denial ? this.#settings.denial : this.#settings.success;
    if (except.matchQuery(asked) !== undefined) return;
    const error = verdict.type === "SERVERERROR";
    // Only answers that hold for every client are cached.
    if (isTailored(reply) || (error && mayBeAboutOptions(asked))) return;
    if (this.#preferPositive && !verdict.answers) {
      const success = this.success.find(hash, traits, asked);
      if (success >= 0 && this.success.isAnswer(success) && this.#isUsable(this.success, success, now))
        return;
    }
    const { sections } = reply;
    // Compressed once here, instead of at each hit that would be truncated.
    if (sections.end > SMALLEST_LIMIT && isCompressible(sections, asked.bytes, sections.count))
      reply.compress();
    const slab = verdict.denial ? this.denial : this.success;
    const evictions = verdict.denial ? counters.denialEvictions : counters.successEvictions;
    const hits = predecessor === undefined ? undefined : this.slabOf(predecessor).hitsOf(predecessor);
    const evicted = slab.put(pending, {
      asked,
      sections: reply.sections,
      rcode: reply.rcode,
      flags: (reply.flags & (Flag.RA | Flag.AD)) | (reply.edns?.compactOk === true ? KEPT_COMPACT : 0),
      ttl: verdict.ttl,
      expiresAt: now + verdict.ttl * 1000,
      error,
      answers: verdict.answers,
      wildcard: wildcardOf(asked),
      hits,
      mentioned,
    });
    if (evicted < 0) return;
    evictions.add(evicted);
    if (!verdict.denial) this.denial.removeAnswer(hash, traits, asked);
    // A name that was denied must not reappear when the denial expires. An error says nothing about the data.
    else if (!error) this.success.removeAnswer(hash, traits, asked);
  }

  /**
   * Drops the answers for these names and for all names below them. Answers beyond the budget of this turn of the
   * event loop are hidden at once and removed in portions. @returns how many were removed at once
   */
  dropAtOrBelow(names: readonly Name[]): number {
    const forgetting: Forgetting = {
      names: undefined,
      left: [...names],
      dropped: 0,
      done: undefined,
      successSerial: this.success.nextSerial,
      denialSerial: this.denial.nextSerial,
    };
    this.#forgetting.push(forgetting);
    const dropped = this.#timer === undefined ? this.#forgetSome() : 0;
    if (this.#forgetting.length > 0) {
      forgetting.names = new NameSet(names);
      this.#epoch = (this.#epoch + 1) | 0;
      this.#forgetMoreLater();
    }
    return dropped;
  }

  /**
   * Resolves with the number of answers dropped when the latest removal is complete; `undefined` if none is in
   * progress.
   */
  get forgetting(): Promise<number> | undefined {
    const last = this.#forgetting.at(-1);
    if (last === undefined) return undefined;
    last.done ??= Promise.withResolvers();
    return last.done.promise;
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    for (const { done, dropped } of this.#forgetting) done?.resolve(dropped);
  }

  /** Releases the memory unless another thread uses it. From then on nothing is found or stored. */
  release(releasePages: (octets: Uint8Array) => void): void {
    this.success.release(releasePages);
    this.denial.release(releasePages);
  }

  #usable(slab: EntrySlab, hash: number, traits: number, query: Query, now: number): number {
    const unit = slab.find(hash, traits, query);
    if (unit < 0 || !this.#isUsable(slab, unit, now)) return -1;
    return this.#forgetting.length > 0 && this.#isForgotten(slab, unit, query) ? -1 : unit;
  }

  #isUsable(slab: EntrySlab, unit: number, now: number): boolean {
    return this.#isGood(slab.expiresAt(unit), slab.isError(unit), now);
  }

  #isGood(expiresAt: number, error: boolean, now: number): boolean {
    if (now < expiresAt) return true;
    // An expired error carries no data that would be worth serving.
    return now < expiresAt + this.#staleWindowMs && !error;
  }

  #isForgotten(slab: EntrySlab, unit: number, query: Query): boolean {
    const serial = slab.serialOf(unit);
    // An answer that depends on other names may be stale because of any of them.
    const isAlias = slab.mentions(unit);
    return this.#forgetting.some(({ names, successSerial, denialSerial }) => {
      const since = slab === this.success ? successSerial : denialSerial;
      return ((serial - since) | 0) < 0 && names !== undefined && (isAlias || names.covers(query.name));
    });
  }

  /** Removes as many answers as fit into a turn. */
  #forgetSome(): number {
    let dropped = 0;
    let looked = 0;
    for (let first = this.#forgetting[0]; first !== undefined; first = this.#forgetting[0]) {
      for (let name = first.left.at(-1); name !== undefined; name = first.left.at(-1)) {
        const successes = this.success.dropAtOrBelow(name, FORGOTTEN_IN_TURN - dropped);
        const denials = this.denial.dropAtOrBelow(name, FORGOTTEN_IN_TURN - dropped);
        const now = Math.max(0, successes) + Math.max(0, denials);
        dropped += now;
        first.dropped += now;
        // Another thread is writing: try again later.
        if (successes < 0 || denials < 0) return dropped;
        if (dropped >= FORGOTTEN_IN_TURN) return dropped;
        first.left.pop();
        if (++looked >= FORGOTTEN_IN_TURN) return dropped;
      }
      this.#forgetting.shift();
      first.done?.resolve(first.dropped);
    }
    return dropped;
  }

  #forgetMoreLater(): void {
    this.#timer ??= this.#clock.after(0, () => {
      this.#timer = undefined;
      this.#forgetSome();
      if (this.#forgetting.length > 0) this.#forgetMoreLater();
    });
  }
}

/** A message from one thread to others. */
export interface SharedAnswers {
  readonly secrets: readonly [number, number];
  readonly success: SharedSlab;
  readonly denial: SharedSlab;
}

/** Answers to names that are outdated. Answers stored from now on are not affected. */
interface Forgetting {
  /** All names, once it is clear that they cannot all be removed at once. */
  names: NameSet | undefined;
  /** Names that still have answers to remove. */
  readonly left: Name[];
  /** Answers removed so far. */
  dropped: number;
  /** Created when a caller waits for the end. */
  done: PromiseWithResolvers<number> | undefined;
  /** The first serial that each slab assigned afterwards. */
  readonly successSerial: number;
  readonly denialSerial: number;
}

/** Bounds the time that one turn of the event loop spends on removals. */
const FORGOTTEN_IN_TURN = 2_000;

/** Octets that every client accepts (RFC 1035 section 2.3.4). */
const SMALLEST_LIMIT = 512;

function wildcardOf(asked: Query): Uint8Array | undefined {
  const text = asked.metadataValue(WILDCARD_LABEL);
  return text === undefined ? undefined : new TextEncoder().encode(text).subarray(0, MAX_WILDCARD_OCTETS);
}
