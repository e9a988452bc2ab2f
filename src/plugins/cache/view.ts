import { setImmediate as nextTurn } from "node:timers/promises";
import type { Name } from "../../dns/name.ts";
import { TurnShare } from "../../lib/time/turn-share.ts";
import type { Clock } from "../../plugin/index.ts";
import type { CachedAnswer, CacheView } from "../../plugin/services/cache-view.ts";
import type { AnswerStore } from "./answer-store.ts";
import type { EntrySlab } from "./entry-slab.ts";
import type { CacheHandler } from "./handler.ts";
import type { EntryFacts } from "./kept-entries.ts";

/** Milliseconds of a turn of the event loop that are spent dropping answers of one type. */
const FORGET_IN_TURN = 1;

/** Drops the entries of one type, or of one name. @returns how many were dropped */
async function forgetIn(
  slab: EntrySlab,
  name: Name,
  below: boolean,
  type: number | undefined,
  rest: () => Promise<void>,
): Promise<number> {
  const isMeant = (entry: EntryFacts): boolean =>
    (type === undefined || entry.type === type) &&
    (below ? entry.name.isAtOrBelow(name) : entry.name.equals(name));
  let dropped = 0;
  // The entries of the name itself come first, and all of them are in the first portion.
  for (let region = 0; region < (below ? slab.regions : Math.min(1, slab.regions)); ) {
    const count = slab.dropWhere(below ? region : name, isMeant);
    // Another thread is writing: try again later.
    if (count < 0) {
      await nextTurn();
      continue;
    }
    dropped += count;
    region++;
    await rest();
  }
  return dropped;
}

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

  async forget(name: Name, below: boolean, type?: number): Promise<number> {
    if (below && type === undefined) {
      const dropped = this.#handler.drop([name]);
      return (await this.#store.forgetting) ?? dropped;
    }
    const { success, denial } = this.#store;
    const rest = new TurnShare(this.#clock, FORGET_IN_TURN).rest;
    return (
      (await forgetIn(success, name, below, type, rest)) + (await forgetIn(denial, name, below, type, rest))
    );
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
