import type { Name } from "../../dns/name.ts";
import type { Clock } from "../../lib/clock.ts";
import type { CachedAnswer, CacheView } from "../../plugin/cache-view.ts";
import type { AnswerStore } from "./answer-store.ts";
import type { EntrySlab } from "./entry-slab.ts";
import type { CacheHandler } from "./handler.ts";

/** The cache as the console shows it. */
export class ShownCache implements CacheView {
  readonly zones: readonly string[];
  readonly #handler: CacheHandler;
  readonly #clock: Clock;

  constructor(handler: CacheHandler, zones: readonly string[], clock: Clock) {
    this.#handler = handler;
    this.zones = zones;
    this.#clock = clock;
  }

  get entries(): number {
    return this.#store.success.size + this.#store.denial.size;
  }

  get octets(): number {
    return this.#store.success.octets + this.#store.denial.octets;
  }

  get maxOctets(): number {
    return this.#store.success.maxOctets + this.#store.denial.maxOctets;
  }

  look(name: Name, most: number): CachedAnswer[] {
    const { success, denial } = this.#store;
    return [...this.#look(success, name, most, false), ...this.#look(denial, name, most, true)].slice(
      0,
      most,
    );
  }

  forget(name: Name, below: boolean, type?: number): number {
    if (below && type === undefined) return this.#handler.drop([name]);
    const concerns = (entry: { readonly name: Name; readonly type: number }): boolean =>
      (below || entry.name.equals(name)) && (type === undefined || entry.type === type);
    const { success, denial } = this.#store;
    return success.dropWhere(name, concerns) + denial.dropWhere(name, concerns);
  }

  get #store(): AnswerStore {
    return this.#handler.store;
  }

  #look(slab: EntrySlab, name: Name, most: number, denial: boolean): CachedAnswer[] {
    const now = this.#clock.now();
    return slab.entriesAt(name, most).map(({ unit, ...facts }) => {
      const left = (slab.expiresAt(unit) - now) / 1000;
      const remaining = Math.min(facts.ttl, Math.max(0, Math.ceil(left)));
      return { ...facts, remaining, age: Math.max(0, Math.round(facts.ttl - left)), denial };
    });
  }
}
