/**
 * A block allocator in one buffer: `malloc` for data that must not be objects. A block has any number of units of 32
 * octets, and free neighbours are merged at once. Free blocks are in lists by length, so allocating and freeing take
 * constant time (two-level segregated fit, after Masmano and others). No length has memory of its own: memory that
 * was full of small blocks can hold large ones later, and vice versa. Nothing is allocated per block: all bookkeeping
 * is in the buffer, too.
 */
import { roundUp, type SharedParts } from "./shared-parts.ts";
import { SlabFault } from "./slab-fault.ts";

/** Blocks begin at multiples of it. */
export const UNIT_OCTETS = 32;
export const UNIT_WORDS = UNIT_OCTETS / 4;
/** The shortest block in use, so no two blocks begin in the same pair of units. */
export const LEAST_UNITS = 2;
/** The largest block is a region: 128 KiB. Memory is taken into use by region, and no block crosses two. */
export const REGION_UNITS = 1 << 12;
export const REGION_OCTETS = REGION_UNITS * UNIT_OCTETS;

/** In the map: a block begins at this unit. Smaller values mean that none does. */
const BEGINS = 0x80;
const FREE = 0x40;
/** The previous block in the region is free. */
const AFTER_FREE = 0x20;
/** The length in units; 0 for a longer one, stored in the next two octets, seven bits in each. */
const SHORT = 0x0f;
const FURTHER_BITS = 7;
const FURTHER = (1 << FURTHER_BITS) - 1;

/** Lengths below this have a list each; above it each power of two has eight lists. */
const EXACT = SHORT + 1;
const EXACT_BITS = 4;
const STEP_BITS = 3;
const LISTS = listOf(REGION_UNITS) + 1;
/** Blocks examined in a list of mixed lengths before a larger block is cut. */
const LOOKED_AT = 4;

/** Words of the part `control`. The last two are a bit for each non-empty list, and the first block of each list. */
const REGIONS_IN_USE = 0;
const UNITS_IN_USE = 1;
const HAND = 2;
const FILLED = 4;
const HEADS = 8;
const CONTROL_WORDS = HEADS + LISTS;

/** Words of a free block. The last one is the number of its first unit. */
const NEXT = 0;
const PREVIOUS = 1;

const NONE = -1;

function always(): boolean {
  return true;
}

/** Units of the smallest block of so many octets. */
export function unitsFor(octets: number): number {
  return Math.max(LEAST_UNITS, Math.ceil(octets / UNIT_OCTETS));
}

/** The list of blocks of that length. */
function listOf(length: number): number {
  if (length < EXACT) return length;
  const bits = 31 - Math.clz32(length);
  const step = (length >> (bits - STEP_BITS)) & ((1 << STEP_BITS) - 1);
  return EXACT + ((bits - EXACT_BITS) << STEP_BITS) + step;
}

/** The first list whose blocks are all at least that long. */
function listFrom(length: number): number {
  if (length < EXACT) return length;
  return listOf(length + (1 << (31 - Math.clz32(length) - STEP_BITS)) - 1);
}

export class BlockMemory {
  /** All blocks: the block at unit `u` has its first word at `u * UNIT_WORDS`. */
  readonly words: Int32Array;
  /** The same memory. */
  readonly octets: Uint8Array;
  readonly regions: number;
  /** Whether another region may be taken into use. The first one always may. */
  mayGrow: () => boolean = always;
  readonly #control: Int32Array;
  readonly #map: Uint8Array;

  /** @param regions the most regions of {@link REGION_OCTETS} */
  constructor(parts: SharedParts, regions: number) {
    this.regions = regions;
    this.#control = parts.int32(CONTROL_WORDS);
    this.#map = parts.octets(regions * REGION_UNITS);
    const { words, octets } = parts.words(regions * REGION_UNITS * UNIT_WORDS);
    this.words = words;
    this.octets = octets;
  }

  /** Octets of a buffer that this needs. */
  static octetsFor(regions: number): number {
    return roundUp(4 * CONTROL_WORDS) + roundUp(regions * REGION_UNITS) + roundUp(regions * REGION_OCTETS);
  }

  /**
   * Frees all memory, whatever it holds.
   * @param isNew whether it is all zero: writing zeros would make the kernel allocate it
   */
  clear(isNew: boolean): void {
    if (!isNew) this.#map.fill(0);
    this.#control.fill(0);
    this.#control.fill(NONE, HEADS);
  }

  /** Octets of blocks in use. */
  get octetsInUse(): number {
    return this.#read(UNITS_IN_USE) * UNIT_OCTETS;
  }

  /** Octets that were ever in use: the kernel has allocated these. */
  get octetsTouched(): number {
    return this.unitsTouched * UNIT_OCTETS;
  }

  /** Units that were ever in use, each with an octet in the map. */
  get unitsTouched(): number {
    return this.#read(REGIONS_IN_USE) * REGION_UNITS;
  }

  /**
   * @param length units, as {@link unitsFor} counts them
   * @returns the first unit of the block, -1 if no free block is long enough
   */
  allocate(length: number): number {
    let unit = this.#findFree(length);
    let found = REGION_UNITS;
    if (unit !== NONE) {
      found = this.lengthOf(unit);
      this.#unlink(unit, found);
    } else {
      const region = this.#read(REGIONS_IN_USE);
      if (region === this.regions || (region > 0 && !this.mayGrow())) return NONE;
      this.#control[REGIONS_IN_USE] = region + 1;
      unit = region * REGION_UNITS;
    }
    if (found > length) this.#link(unit + length, found - length);
    else this.#tellNext(unit + length, 0);
    this.#note(unit, BEGINS, length);
    this.#control[UNITS_IN_USE] = this.#read(UNITS_IN_USE) + length;
    return unit;
  }

  /** Frees a block. Overwrites its first two words and its last one. */
  free(unit: number): void {
    let start = unit;
    let length = this.lengthOf(unit);
    this.#control[UNITS_IN_USE] = this.#read(UNITS_IN_USE) - length;
    const next = unit + length;
    if (next % REGION_UNITS !== 0 && (this.#stateOf(next) & FREE) !== 0) {
      const more = this.lengthOf(next);
      this.#unlink(next, more);
      this.#map[next] = 0;
      length += more;
    }
    const previous = this.runStart(unit);
    if (previous !== unit) {
      this.#unlink(previous, unit - previous);
      this.#map[unit] = 0;
      length += unit - previous;
      start = previous;
    }
    this.#link(start, length);
  }

  /** Whether a block in use begins there. */
  isBlock(unit: number): boolean {
    return (this.#stateOf(unit) & (BEGINS | FREE)) === BEGINS;
  }

  /** Units of the block that begins there, in use or free. */
  lengthOf(unit: number): number {
    const short = this.#stateOf(unit) & SHORT;
    return short !== 0 ? short : this.#stateOf(unit + 1) | (this.#stateOf(unit + 2) << FURTHER_BITS);
  }

  /** The first unit of the free block in front of the block at `unit`; `unit` itself without one. */
  runStart(unit: number): number {
    return (this.#stateOf(unit) & AFTER_FREE) === 0 ? unit : (this.words[unit * UNIT_WORDS - 1] as number);
  }

  /**
   * The next block in use at or behind the hand; the hand moves on to what follows. The hand goes round all memory
   * that was ever in use, so a search for a block to evict reaches every block.
   * @returns its unit, -1 if a whole round finds no block
   */
  nextBlock(): number {
    const end = this.unitsTouched;
    let unit = this.#read(HAND);
    for (let passed = 0; passed < end; ) {
      if (unit >= end) unit = 0;
      const length = this.#step(unit);
      if (this.isBlock(unit)) {
        this.#control[HAND] = unit + length;
        return unit;
      }
      unit += length;
      passed += length;
    }
    return NONE;
  }

  /** The first block in use that begins in a part of memory; -1 without one. */
  firstBlock(from: number, end: number): number {
    let unit = from;
    while (unit < end) {
      if (this.isBlock(unit)) return unit;
      unit += this.#step(unit);
    }
    return NONE;
  }

  /** The blocks in use of a region. Do not allocate or free while iterating. */
  *blocksIn(region: number): Generator<number> {
    const end = (region + 1) * REGION_UNITS;
    let unit = this.firstBlock(region * REGION_UNITS, end);
    while (unit !== NONE) {
      yield unit;
      unit = this.firstBlock(unit + this.#step(unit), end);
    }
  }

  /** Moves the hand. */
  moveHand(unit: number): void {
    this.#control[HAND] = unit;
  }

  /** Units to the next beginning of a block, or at least closer to it. */
  #step(unit: number): number {
    if ((this.#stateOf(unit) & BEGINS) === 0) return 1;
    const length = this.lengthOf(unit);
    if (length === 0) throw new SlabFault("a block has no length");
    return length;
  }

  #findFree(length: number): number {
    const from = listFrom(length);
    const own = listOf(length);
    if (from !== own) {
      let unit = this.#read(HEADS + own);
      for (let count = 0; count < LOOKED_AT && unit !== NONE; count++) {
        if (this.lengthOf(unit) >= length) return unit;
        unit = this.words[unit * UNIT_WORDS + NEXT] as number;
      }
    }
    const list = this.#filledFrom(from);
    return list === NONE ? NONE : this.#read(HEADS + list);
  }

  /** The first non-empty list from this one on. */
  #filledFrom(list: number): number {
    let word = list >> 5;
    let bits = this.#read(FILLED + word) & (NONE << (list & 31));
    while (bits === 0) {
      word++;
      if (word << 5 >= LISTS) return NONE;
      bits = this.#read(FILLED + word);
    }
    return (word << 5) + 31 - Math.clz32(bits & -bits);
  }

  /** Makes a free block, and marks the block behind it. */
  #link(unit: number, length: number): void {
    const { words } = this;
    const list = listOf(length);
    const head = this.#read(HEADS + list);
    words[unit * UNIT_WORDS + NEXT] = head;
    words[unit * UNIT_WORDS + PREVIOUS] = NONE;
    words[(unit + length) * UNIT_WORDS - 1] = unit;
    if (head !== NONE) words[head * UNIT_WORDS + PREVIOUS] = unit;
    this.#control[HEADS + list] = unit;
    this.#control[FILLED + (list >> 5)] = this.#read(FILLED + (list >> 5)) | (1 << (list & 31));
    this.#note(unit, BEGINS | FREE, length);
    this.#tellNext(unit + length, AFTER_FREE);
  }

  #unlink(unit: number, length: number): void {
    const { words } = this;
    const list = listOf(length);
    const next = words[unit * UNIT_WORDS + NEXT] as number;
    const previous = words[unit * UNIT_WORDS + PREVIOUS] as number;
    if (next !== NONE) words[next * UNIT_WORDS + PREVIOUS] = previous;
    if (previous !== NONE) {
      words[previous * UNIT_WORDS + NEXT] = next;
      return;
    }
    this.#control[HEADS + list] = next;
    if (next === NONE)
      this.#control[FILLED + (list >> 5)] = this.#read(FILLED + (list >> 5)) & ~(1 << (list & 31));
  }

  /** Records whether the memory in front of a block is free. */
  #tellNext(next: number, afterFree: number): void {
    if (next % REGION_UNITS !== 0) this.#map[next] = (this.#stateOf(next) & ~AFTER_FREE) | afterFree;
  }

  #note(unit: number, state: number, length: number): void {
    if (length < EXACT) {
      this.#map[unit] = state | length;
      return;
    }
    this.#map[unit] = state;
    this.#map[unit + 1] = length & FURTHER;
    this.#map[unit + 2] = length >> FURTHER_BITS;
  }

  #read(at: number): number {
    return this.#control[at] as number;
  }

  #stateOf(unit: number): number {
    return this.#map[unit] as number;
  }
}
