/** The two caches side by side, and which of their answers a query gets (CoreDNS facts 2.35). */
import type { Name } from "../../dns/name.ts";
import type { Query } from "../../plugin/query.ts";
import type { Reply } from "../../plugin/reply.ts";
import type { Random } from "../../plugin/site.ts";
import { CacheEntry } from "./entry.ts";
import { EntryStore } from "./entry-store.ts";
import type { PendingQuery } from "./pending-query.ts";
import { QuestionHasher } from "./question-hash.ts";
import type { CacheSettings } from "./settings.ts";
import type { Verdict } from "./verdict.ts";

export class AnswerStore {
  readonly success: EntryStore;
  readonly denial: EntryStore;
  readonly #hasher: QuestionHasher;
  readonly #settings: CacheSettings;
  readonly #staleWindowMs: number;
  readonly #preferPositive: boolean;

  constructor(settings: CacheSettings, random: Random) {
    this.#settings = settings;
    this.#staleWindowMs = settings.stale?.windowMs ?? 0;
    this.#preferPositive = settings.stale?.preferPositive ?? false;
    this.#hasher = new QuestionHasher(random.unpredictable(), random.unpredictable());
    const fraction = (): number => random.fraction();
    this.success = new EntryStore(settings.success.capacity, fraction);
    this.denial = new EntryStore(settings.denial.capacity, fraction);
  }

  hash(query: Query, traits: number): number {
    return this.#hasher.hash(query, traits);
  }

  /** The answer to give at `now`: a valid one, or with `serve_stale` one that is past its end. */
  find(hash: number, traits: number, query: Query, now: number): CacheEntry | undefined {
    const denial = this.denial.find(hash, traits, query);
    const success = this.success.find(hash, traits, query);
    const usableSuccess = success !== undefined && this.#isUsable(success, now) ? success : undefined;
    if (denial === undefined || !this.#isUsable(denial, now)) return usableSuccess;
    return denial.error && usableSuccess !== undefined ? usableSuccess : denial;
  }

  /**
   * Keeps what the rest of the chain said, if it may be kept.
   * @param predecessor the entry that the answer was asked for to renew
   */
  keep(
    pending: PendingQuery,
    reply: Reply,
    verdict: Verdict,
    now: number,
    predecessor: CacheEntry | undefined,
  ): void {
    const { asked, hash, traits, counters } = pending;
    if (!verdict.storable || verdict.ttl <= 0) return;
    if (!verdict.sameQuestion) {
      counters.drops.increment();
      return;
    }
    const { except } = verdict.denial ? this.#settings.denial : this.#settings.success;
    if (except.contains(asked.name)) return;
    const entry = new CacheEntry(pending, asked, reply, verdict, now);
    if (predecessor !== undefined) entry.inheritHits(predecessor);
    const denial = this.denial.find(hash, traits, asked);
    const success = this.success.find(hash, traits, asked);
    if (this.#preferPositive && !entry.answers && success?.answers === true && this.#isUsable(success, now))
      return;
    if (entry.denial) {
      counters.denialEvictions.add(this.denial.put(entry, denial));
      // What is said not to exist must not come back when the denial expires. An error says nothing about the data.
      if (success !== undefined && !entry.error) this.success.remove(success);
    } else {
      counters.successEvictions.add(this.success.put(entry, success));
      if (denial !== undefined) this.denial.remove(denial);
    }
  }

  /** Forgets the answers for these names and for all below them. Returns how many there were. */
  dropAtOrBelow(names: readonly Name[]): number {
    return this.success.dropAtOrBelow(names) + this.denial.dropAtOrBelow(names);
  }

  #isUsable(entry: CacheEntry, now: number): boolean {
    if (now < entry.expiresAt) return true;
    // An error that is over is no data that could be better than none.
    return !entry.error && now < entry.expiresAt + this.#staleWindowMs;
  }
}
