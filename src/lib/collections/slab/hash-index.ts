/**
 * Maps hashes to numbers: open addressing with linear probing. The table is made for the largest number of entries,
 * so it never grows and no turn has to wait for that; untouched pages cost no memory. Hashes must be keyed if an
 * attacker can choose the hashed data.
 */

import { roundUp, type SharedParts } from "./shared-parts.ts";
import { SlabFault } from "./slab-fault.ts";

export class HashIndex {
  /**
   * Pairs of hash and number plus one; a second word of 0 marks an empty slot. For loops that must not call: see
   * {@link first}.
   */
  readonly pairs: Int32Array;
  readonly #mask: number;

  constructor(parts: SharedParts, capacity: number) {
    const places = placesFor(capacity);
    this.pairs = parts.int32(2 * places);
    this.#mask = places - 1;
  }

  /** Octets that this takes of a buffer. */
  static octetsFor(capacity: number): number {
    return roundUp(8 * placesFor(capacity));
  }

  /**
   * The place in {@link pairs} where the search for a hash begins. It continues with {@link next} and ends at an
   * empty slot.
   */
  first(hash: number): number {
    return (hash & this.#mask) << 1;
  }

  next(at: number): number {
    return (at + 2) & ((this.#mask << 1) | 1);
  }

  /** There must be a free slot. */
  add(hash: number, value: number): void {
    const { pairs } = this;
    const first = this.first(hash);
    let at = first;
    while (pairs[at + 1] !== 0) {
      at = this.next(at);
      if (at === first) throw new SlabFault("the index has no empty place");
    }
    pairs[at] = hash;
    pairs[at + 1] = value + 1;
  }

  /** Moves the following entries up, so that no search ends at a gap too early. */
  remove(hash: number, value: number): void {
    const { pairs } = this;
    const first = this.first(hash);
    let gap = first;
    while (pairs[gap + 1] !== value + 1) {
      if (pairs[gap + 1] === 0) return;
      gap = this.next(gap);
      if (gap === first) throw new SlabFault("the index has no empty place");
    }
    const found = gap;
    const mask = this.#mask;
    for (let at = this.next(gap); pairs[at + 1] !== 0; at = this.next(at)) {
      if (at === found) throw new SlabFault("the index has no empty place");
      const home = (pairs[at] as number) & mask;
      // An entry may fill the gap unless its home slot lies behind the gap, in circular order.
      if ((((at >> 1) - home) & mask) < (((at >> 1) - (gap >> 1)) & mask)) continue;
      pairs[gap] = pairs[at] as number;
      pairs[gap + 1] = pairs[at + 1] as number;
      gap = at;
    }
    pairs[gap + 1] = 0;
  }
}

/** A power of two, at most half of which is taken, so searches stay short. */
function placesFor(capacity: number): number {
  return 2 ** Math.ceil(Math.log2(2 * Math.max(1, capacity)));
}
