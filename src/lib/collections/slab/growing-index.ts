import { type Column, ColumnMemory } from "./column-memory.ts";
import { SlabFault } from "./slab-fault.ts";

/**
 * Maps hashes to numbers, for any number of entries. It grows by one slot with each entry (linear hashing after
 * Litwin), so no event-loop turn pays for all entries at once, and it contains no objects. Entries are small numbers
 * of the caller's choice, each in one slot only.
 */
export class GrowingIndex {
  /** The first entry of each slot, plus one: 0 for none, like memory that was never written. */
  readonly #heads: Column<Int32Array>;
  /** The hash of each entry. */
  readonly #hashes: Column<Int32Array>;
  readonly #next: Column<Int32Array>;
  readonly #round: Column<Int32Array>;

  /** @param memory that holds the index */
  constructor(memory: ColumnMemory = new ColumnMemory()) {
    this.#heads = memory.int32(SMALLEST);
    this.#hashes = memory.int32(SMALLEST);
    this.#next = memory.int32(SMALLEST);
    this.#round = memory.int32(ROUND_WORDS);
    this.#round.cells[MASK] = SMALLEST / 2 - 1;
  }

  /** Octets that this takes. */
  get octets(): number {
    return this.#heads.octets + this.#hashes.octets + this.#next.octets;
  }

  /** The oldest entry of a hash; {@link NO_ENTRY} for none. */
  first(hash: number): number {
    return this.#from((this.#heads.cells[this.#placeOf(hash)] ?? 0) - 1, hash);
  }

  /** The next entry of the same hash. */
  after(entry: number): number {
    return this.#from(this.#next.cells[entry] ?? NO_ENTRY, this.#hashes.cells[entry] ?? 0);
  }

  /** Appends an entry to those of its hash. It must not be present. */
  add(entry: number, hash: number): void {
    this.#hashes.reserve(entry);
    this.#next.reserve(entry);
    this.#hashes.cells[entry] = hash;
    this.#append(this.#placeOf(hash), entry);
    const round = this.#round.cells;
    const size = (round[SIZE] ?? 0) + 1;
    round[SIZE] = size;
    if (size > (round[MASK] ?? 0) + 1 + (round[SPLIT] ?? 0)) this.#grow(round);
  }

  /** The entry must be present. */
  remove(entry: number): void {
    const next = this.#next.cells;
    const heads = this.#heads.cells;
    const place = this.#placeOf(this.#hashes.cells[entry] ?? 0);
    const following = next[entry] ?? NO_ENTRY;
    let at = (heads[place] ?? 0) - 1;
    if (at === entry) heads[place] = following + 1;
    else {
      let left = next.length;
      while (next[at] !== entry) {
        if (left-- === 0) throw new SlabFault("an index does not have the entry that it is to lose");
        at = next[at] ?? NO_ENTRY;
      }
      next[at] = following;
    }
    const round = this.#round.cells;
    round[SIZE] = (round[SIZE] ?? 0) - 1;
  }

  #placeOf(hash: number): number {
    const round = this.#round.cells;
    const mask = round[MASK] ?? 0;
    const place = hash & mask;
    return place < (round[SPLIT] ?? 0) ? hash & (mask * 2 + 1) : place;
  }

  #from(start: number, hash: number): number {
    const hashes = this.#hashes.cells;
    const next = this.#next.cells;
    let entry = start;
    // A reader may follow a circular chain while another thread writes.
    let left = next.length;
    while (entry !== NO_ENTRY && hashes[entry] !== hash && left-- > 0) entry = next[entry] ?? NO_ENTRY;
    return left < 0 ? NO_ENTRY : entry;
  }

  #append(place: number, entry: number): void {
    const next = this.#next.cells;
    const heads = this.#heads.cells;
    next[entry] = NO_ENTRY;
    let at = (heads[place] ?? 0) - 1;
    if (at === NO_ENTRY) {
      heads[place] = entry + 1;
      return;
    }
    let left = next.length;
    for (let behind = next[at] ?? NO_ENTRY; behind !== NO_ENTRY; behind = next[at] ?? NO_ENTRY) {
      if (left-- === 0) throw new SlabFault("a chain of an index has no end");
      at = behind;
    }
    next[at] = entry;
  }

  /** Divides the entries of one slot between that and a new one. */
  #grow(round: Int32Array): void {
    const mask = round[MASK] ?? 0;
    const place = round[SPLIT] ?? 0;
    const split = place + 1;
    round[SPLIT] = split;
    this.#heads.reserve(mask + split);
    const heads = this.#heads.cells;
    let entry = (heads[place] ?? 0) - 1;
    heads[place] = 0;
    let left = this.#next.cells.length;
    while (entry !== NO_ENTRY) {
      if (left-- === 0) throw new SlabFault("a chain of an index has no end");
      const following = this.#next.cells[entry] ?? NO_ENTRY;
      this.#append(this.#placeOf(this.#hashes.cells[entry] ?? 0), entry);
      entry = following;
    }
    if (split <= mask) return;
    round[MASK] = mask * 2 + 1;
    round[SPLIT] = 0;
  }
}

/** Means no entry. */
export const NO_ENTRY = -1;

/**
 * Words of the part `round`: slots of the previous round, less one (a power of two less one), the number of slots
 * already split, and entries.
 */
const MASK = 0;
const SPLIT = 1;
const SIZE = 2;
const ROUND_WORDS = 3;

const SMALLEST = 16;

/** The array, or a larger copy if it does not reach `index`. */
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
