/**
 * From hashes to numbers, for as many as there come to be. It grows by one place with each entry (linear hashing after Litwin), so no turn of
 * the event loop pays for all entries at once, and nothing of it is an object. Entries are small numbers of the caller's choice, each
 * at one place only.
 */
export class GrowingIndex {
  /** The first entry of each place. */
  #heads: Int32Array = new Int32Array(SMALLEST).fill(NO_ENTRY);
  /** Of each entry. */
  #hashes: Int32Array = new Int32Array(SMALLEST);
  #next: Int32Array = new Int32Array(SMALLEST);
  /** Places of the round before, less one: a power of two less one. */
  #mask = SMALLEST / 2 - 1;
  /** How many of those have been split in this round. */
  #split = 0;
  #size = 0;

  /** Octets that this takes. */
  get octets(): number {
    return this.#heads.byteLength + this.#hashes.byteLength + this.#next.byteLength;
  }

  /** The entry that came first of those with a hash; {@link NO_ENTRY} for none. */
  first(hash: number): number {
    return this.#from(this.#heads[this.#placeOf(hash)] ?? NO_ENTRY, hash);
  }

  /** The next entry of the same hash. */
  after(entry: number): number {
    return this.#from(this.#next[entry] ?? NO_ENTRY, this.#hashes[entry] ?? 0);
  }

  /** Puts an entry behind all others of its hash. It must not be there yet. */
  add(entry: number, hash: number): void {
    this.#hashes = withRoom(this.#hashes, entry);
    this.#next = withRoom(this.#next, entry);
    this.#hashes[entry] = hash;
    this.#append(this.#placeOf(hash), entry);
    if (++this.#size > this.#mask + 1 + this.#split) this.#grow();
  }

  /** The entry must be there. */
  remove(entry: number): void {
    const next = this.#next;
    const place = this.#placeOf(this.#hashes[entry] ?? 0);
    const following = next[entry] ?? NO_ENTRY;
    let at = this.#heads[place] ?? NO_ENTRY;
    if (at === entry) this.#heads[place] = following;
    else {
      while (next[at] !== entry) at = next[at] ?? NO_ENTRY;
      next[at] = following;
    }
    this.#size--;
  }

  #placeOf(hash: number): number {
    const place = hash & this.#mask;
    return place < this.#split ? hash & (this.#mask * 2 + 1) : place;
  }

  #from(start: number, hash: number): number {
    let entry = start;
    while (entry !== NO_ENTRY && this.#hashes[entry] !== hash) entry = this.#next[entry] ?? NO_ENTRY;
    return entry;
  }

  #append(place: number, entry: number): void {
    const next = this.#next;
    next[entry] = NO_ENTRY;
    let at = this.#heads[place] ?? NO_ENTRY;
    if (at === NO_ENTRY) {
      this.#heads[place] = entry;
      return;
    }
    for (let behind = next[at] ?? NO_ENTRY; behind !== NO_ENTRY; behind = next[at] ?? NO_ENTRY) at = behind;
    next[at] = entry;
  }

  /** Divides the entries of one place between that and a new one. */
  #grow(): void {
    const place = this.#split++;
    this.#heads = withRoom(this.#heads, this.#mask + this.#split, NO_ENTRY);
    let entry = this.#heads[place] ?? NO_ENTRY;
    this.#heads[place] = NO_ENTRY;
    while (entry !== NO_ENTRY) {
      const following = this.#next[entry] ?? NO_ENTRY;
      this.#append(this.#placeOf(this.#hashes[entry] ?? 0), entry);
      entry = following;
    }
    if (this.#split <= this.#mask) return;
    this.#mask = this.#mask * 2 + 1;
    this.#split = 0;
  }
}

/** What stands for no entry. */
export const NO_ENTRY = -1;

const SMALLEST = 16;

/** The array, or a copy with some room to spare where it does not reach as far as `index`. */
export function withRoom<T extends Int32Array | Uint16Array | Uint8Array>(
  array: T,
  index: number,
  fill = 0,
): T {
  if (index < array.length) return array;
  const length = Math.max(SMALLEST, index + 1 + (index >> 3));
  const larger = new (array.constructor as new (length: number) => T)(length);
  larger.set(array);
  if (fill !== 0) larger.fill(fill, array.length);
  return larger;
}
