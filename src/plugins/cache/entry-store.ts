/** A bounded table of answers. */
import type { Name } from "../../dns/name.ts";
import { NameSet } from "../../dns/name-set.ts";
import type { Query } from "../../plugin/query.ts";
import type { CacheEntry } from "./entry.ts";

/**
 * Answers by question. Full means either of two things: as many entries as the capacity says, or {@link OCTETS_PER_ENTRY} times as
 * many octets. Then entries chosen at random go, which no stranger can steer and which needs no bookkeeping on a hit.
 */
export class EntryStore {
  readonly capacity: number;
  readonly maxOctets: number;
  readonly #fraction: () => number;
  /** All entries without gaps, so that one can be drawn by lot. */
  readonly #entries: CacheEntry[] = [];
  #buckets: (CacheEntry | undefined)[];
  #mask: number;
  #octets = 0;

  /**
   * @param capacity entries
   * @param fraction draws lots: uniform in [0, 1)
   */
  constructor(capacity: number, fraction: () => number) {
    this.capacity = capacity;
    this.maxOctets = capacity * OCTETS_PER_ENTRY;
    this.#fraction = fraction;
    this.#buckets = emptyBuckets(INITIAL_BUCKETS);
    this.#mask = INITIAL_BUCKETS - 1;
  }

  get size(): number {
    return this.#entries.length;
  }

  /** Sum of {@link CacheEntry.octets}. */
  get octets(): number {
    return this.#octets;
  }

  /** The answer to the question of `query`, expired or not. */
  find(hash: number, traits: number, query: Query): CacheEntry | undefined {
    let entry = this.#buckets[hash & this.#mask];
    while (entry !== undefined) {
      if (entry.hash === hash && entry.matches(query, traits)) return entry;
      entry = entry.next;
    }
    return undefined;
  }

  /**
   * Adds an entry. The one that has its place now, as {@link find} gave it, must be handed over.
   * @returns how many other entries had to go
   */
  put(entry: CacheEntry, replaced: CacheEntry | undefined): number {
    if (replaced !== undefined) this.remove(replaced);
    let evicted = 0;
    while (this.#entries.length >= this.capacity || this.#octets + entry.octets > this.maxOctets) {
      if (!this.#evict()) break;
      evicted++;
    }
    if (this.#entries.length > this.#mask) this.#grow();
    entry.index = this.#entries.length;
    this.#entries.push(entry);
    this.#octets += entry.octets;
    this.#link(entry);
    return evicted;
  }

  /** Takes an entry out; one that is not in the table any more is left alone. */
  remove(entry: CacheEntry): void {
    if (this.#entries[entry.index] !== entry) return;
    this.#unlink(entry);
    this.#octets -= entry.octets;
    const last = this.#entries.pop();
    if (last !== undefined && last !== entry) {
      last.index = entry.index;
      this.#entries[entry.index] = last;
    }
    entry.index = -1;
  }

  /**
   * Drops the answers to all questions for these names and for names below them. Looks at every entry, some 20 ns each: who
   * has many changes to tell should gather them.
   * @returns how many there were
   */
  dropAtOrBelow(names: readonly Name[]): number {
    const outdated = new NameSet(names);
    let dropped = 0;
    // From the end, since removal moves the last entry into the gap.
    for (let index = this.#entries.length - 1; index >= 0; index--) {
      const entry = this.#entries[index];
      if (entry === undefined || !outdated.covers(entry.name)) continue;
      this.remove(entry);
      dropped++;
    }
    return dropped;
  }

  #evict(): boolean {
    const victim = this.#entries[Math.floor(this.#fraction() * this.#entries.length)];
    if (victim === undefined) return false;
    this.remove(victim);
    return true;
  }

  #grow(): void {
    const size = this.#buckets.length * 2;
    this.#buckets = emptyBuckets(size);
    this.#mask = size - 1;
    for (const entry of this.#entries) this.#link(entry);
  }

  #link(entry: CacheEntry): void {
    const bucket = entry.hash & this.#mask;
    entry.next = this.#buckets[bucket];
    this.#buckets[bucket] = entry;
  }

  #unlink(entry: CacheEntry): void {
    const bucket = entry.hash & this.#mask;
    let before: CacheEntry | undefined;
    for (let at = this.#buckets[bucket]; at !== entry; at = at.next) {
      if (at === undefined) return;
      before = at;
    }
    if (before === undefined) this.#buckets[bucket] = entry.next;
    else before.next = entry.next;
    entry.next = undefined;
  }
}

/**
 * What the octets of an entry may be on the average. Usual answers have 60 to 500; the bound is for who fills the cache with
 * answers of 64 KiB.
 */
export const OCTETS_PER_ENTRY = 2048;

/** A power of two. */
const INITIAL_BUCKETS = 1024;

function emptyBuckets(size: number): (CacheEntry | undefined)[] {
  return new Array<CacheEntry | undefined>(size).fill(undefined);
}
