/**
 * From hashes to numbers, open addressing with linear probing. The table is made for as many entries as there will ever be, so it never grows
 * and nothing has to wait until it has grown; pages that nothing falls on cost no memory. Hashes must be keyed where strangers choose
 * what is hashed.
 */

import { roundUp, type SharedParts } from "./shared-parts.ts";
import { SlabFault } from "./slab-fault.ts";

export class HashIndex {
  /** Pairs of hash and number plus one; a second word of 0 marks an empty place. For loops that must not call: see {@link first}. */
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

  /** Where in {@link pairs} the search for a hash begins. It goes on with {@link next} and ends at an empty place. */
  first(hash: number): number {
    return (hash & this.#mask) << 1;
  }

  next(at: number): number {
    return (at + 2) & ((this.#mask << 1) | 1);
  }

  /** There must be room. */
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

  /** What follows moves up, so that no search finds a gap before its end. */
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
      // It may fill the gap unless its home lies behind the gap, going round.
      if ((((at >> 1) - home) & mask) < (((at >> 1) - (gap >> 1)) & mask)) continue;
      pairs[gap] = pairs[at] as number;
      pairs[gap + 1] = pairs[at + 1] as number;
      gap = at;
    }
    pairs[gap + 1] = 0;
  }
}

/** A power of two, at the most half of which is taken: searches look at two places on the average. */
function placesFor(capacity: number): number {
  return 2 ** Math.ceil(Math.log2(2 * Math.max(1, capacity)));
}
