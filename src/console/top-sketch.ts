/**
 * The most frequent keys of a stream in a table of fixed size (Space-Saving, Metwally and others 2005): a new key
 * replaces the rarest, whose count becomes its error. A key more frequent than one in `capacity` is always present.
 */

export interface TopEntry {
  readonly key: string;
  readonly count: number;
  /** The most by which the count may be too high. */
  readonly error: number;
  nxdomain: number;
  servfail: number;
  /** The top list of the key; absent in a table without. */
  readonly inner: TopSketch | undefined;
}

class Entry implements TopEntry {
  key: string;
  count: number;
  error = 0;
  nxdomain = 0;
  servfail = 0;
  readonly inner: TopSketch | undefined;
  /** Index in the heap. */
  place: number;

  constructor(key: string, count: number, inner: TopSketch | undefined, place: number) {
    this.key = key;
    this.count = count;
    this.inner = inner;
    this.place = place;
  }
}

/** The lower bound of the key's count. */
export function leastOf({ count, error }: TopEntry): number {
  return count - error;
}

/** Queries, of which half may have faded. */
const LEAST_KNOWN = 0.5;
/** The largest table that is searched linearly. */
const SMALL = 16;

export class TopSketch {
  readonly #capacity: number;
  readonly #innerCapacity: number;
  /** By key; absent in a small table: a map with many short-lived keys leaves long-lived garbage. */
  readonly #index: Map<string, Entry> | undefined;
  /** The rarest first: no entry has a higher count than those at twice its index, plus one and plus two. */
  #heap: Entry[] = [];
  total = 0;

  /** @param innerCapacity size of each key's own top list, 0 for none */
  constructor(capacity: number, innerCapacity = 0) {
    this.#capacity = capacity;
    this.#innerCapacity = innerCapacity;
    this.#index = capacity > SMALL ? new Map() : undefined;
  }

  add(key: string, weight: number): TopEntry {
    this.total += weight;
    const known = this.#find(key);
    if (known !== undefined) {
      known.count += weight;
      this.#sink(known);
      return known;
    }
    const rarest = this.#heap[0];
    if (rarest === undefined || this.#heap.length < this.#capacity) return this.#insert(key, weight);
    this.#index?.delete(rarest.key);
    // Entries are reused: most keys of a long tail come and go.
    rarest.key = key;
    rarest.error = rarest.count;
    rarest.count += weight;
    rarest.nxdomain = 0;
    rarest.servfail = 0;
    rarest.inner?.clear();
    this.#index?.set(key, rarest);
    this.#sink(rarest);
    return rarest;
  }

  /** The most frequent first. */
  top(most: number): TopEntry[] {
    return this.#heap.toSorted((one, other) => other.count - one.count).slice(0, most);
  }

  /**
   * Those of which is known how frequent they are, the most frequent first: the more is error, the less of a count belongs to its key, and
   * where nearly all keys are rare, chance fills the table.
   */
  known(most: number): TopEntry[] {
    return this.#heap
      .filter((entry) => leastOf(entry) >= Math.max(entry.error, LEAST_KNOWN))
      .sort((one, other) => leastOf(other) - leastOf(one))
      .slice(0, most);
  }

  get size(): number {
    return this.#heap.length;
  }

  /** Halves everything, so that what was long ago fades. */
  fade(): void {
    this.total /= 2;
    for (const entry of this.#heap) {
      entry.count /= 2;
      entry.error /= 2;
      entry.nxdomain /= 2;
      entry.servfail /= 2;
      entry.inner?.fade();
      if (entry.count < 0.5) this.#index?.delete(entry.key);
    }
    this.#heap = this.#heap.filter(({ count }) => count >= 0.5).sort((one, other) => one.count - other.count);
    for (const [place, entry] of this.#heap.entries()) entry.place = place;
  }

  clear(): void {
    this.total = 0;
    this.#index?.clear();
    this.#heap.length = 0;
  }

  #find(key: string): Entry | undefined {
    if (this.#index !== undefined) return this.#index.get(key);
    for (const entry of this.#heap) if (entry.key === key) return entry;
    return undefined;
  }

  #insert(key: string, weight: number): Entry {
    const inner = this.#innerCapacity > 0 ? new TopSketch(this.#innerCapacity) : undefined;
    const entry = new Entry(key, weight, inner, this.#heap.length);
    this.#index?.set(key, entry);
    this.#heap.push(entry);
    while (entry.place > 0) {
      const above = this.#heap[(entry.place - 1) >> 1];
      if (above === undefined || above.count <= entry.count) break;
      this.#swap(above, entry);
    }
    return entry;
  }

  /** Moves an entry whose count has grown to its place. */
  #sink(entry: Entry): void {
    const heap = this.#heap;
    for (;;) {
      const left = heap[2 * entry.place + 1];
      const right = heap[2 * entry.place + 2];
      const rarer = left !== undefined && right !== undefined && right.count < left.count ? right : left;
      if (rarer === undefined || rarer.count >= entry.count) return;
      this.#swap(entry, rarer);
    }
  }

  #swap(upper: Entry, lower: Entry): void {
    const { place } = upper;
    this.#heap[lower.place] = upper;
    upper.place = lower.place;
    this.#heap[place] = lower;
    lower.place = place;
  }
}
