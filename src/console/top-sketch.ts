/**
 * The most frequent keys of a stream in a table of fixed size (Space-Saving, Metwally and others 2005): a new key takes the place of the
 * rarest, whose count becomes its error. What is more frequent than one in `capacity` is always there.
 */

export interface TopEntry {
  readonly key: string;
  count: number;
  /** How much too large the count may be. */
  error: number;
  nxdomain: number;
  servfail: number;
  /** What came with the key; absent in a table without. */
  readonly inner: TopSketch | undefined;
}

/** What was counted for the key for certain. */
export function leastOf({ count, error }: TopEntry): number {
  return count - error;
}

/** Queries, of which half may have faded. */
const LEAST_KNOWN = 0.5;
/** Candidates for the next eviction that one look at the table finds. */
const VICTIMS = 16;

export class TopSketch {
  readonly #capacity: number;
  readonly #innerCapacity: number;
  readonly #entries = new Map<string, TopEntry>();
  #victims: TopEntry[] = [];
  #least = 0;
  total = 0;

  /** @param innerCapacity keys that are kept with each key, 0 for none */
  constructor(capacity: number, innerCapacity = 0) {
    this.#capacity = capacity;
    this.#innerCapacity = innerCapacity;
  }

  add(key: string, weight: number): TopEntry {
    this.total += weight;
    const known = this.#entries.get(key);
    if (known !== undefined) {
      known.count += weight;
      return known;
    }
    const error = this.#entries.size < this.#capacity ? 0 : this.#evict();
    const inner = this.#innerCapacity > 0 ? new TopSketch(this.#innerCapacity) : undefined;
    const entry: TopEntry = { key, count: error + weight, error, nxdomain: 0, servfail: 0, inner };
    this.#entries.set(key, entry);
    return entry;
  }

  /** The most frequent first. */
  top(most: number): TopEntry[] {
    return [...this.#entries.values()].sort((one, other) => other.count - one.count).slice(0, most);
  }

  /**
   * Those of which is known how frequent they are, the most frequent first: the more is error, the less of a count belongs to its key, and
   * where nearly all keys are rare, chance fills the table.
   */
  known(most: number): TopEntry[] {
    return [...this.#entries.values()]
      .filter((entry) => leastOf(entry) >= Math.max(entry.error, LEAST_KNOWN))
      .sort((one, other) => leastOf(other) - leastOf(one))
      .slice(0, most);
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Halves everything, so that what was long ago fades. */
  fade(): void {
    this.total /= 2;
    this.#victims = [];
    for (const [key, entry] of this.#entries) {
      entry.count /= 2;
      entry.error /= 2;
      entry.nxdomain /= 2;
      entry.servfail /= 2;
      entry.inner?.fade();
      if (entry.count < 0.5) this.#entries.delete(key);
    }
  }

  /** @returns the count of the key that went */
  #evict(): number {
    let victim = this.#victims.pop();
    // One that was seen since is no candidate any more.
    while (victim !== undefined && victim.count !== this.#least) victim = this.#victims.pop();
    if (victim === undefined) {
      const rarest = [...this.#entries.values()].sort((one, other) => one.count - other.count);
      [victim] = rarest;
      this.#least = victim?.count ?? 0;
      this.#victims = rarest.slice(1, VICTIMS).filter(({ count }) => count === this.#least);
    }
    if (victim === undefined) return 0;
    this.#entries.delete(victim.key);
    return victim.count;
  }
}
