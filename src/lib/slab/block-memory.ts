/**
 * Memory in blocks, cut out of one buffer: the part of `malloc` for what must be no object. A block has 64 octets times a power of two, and
 * lies at a multiple of its own size. Two free halves become a whole again (a buddy system after Knowlton), so memory that was full of
 * small blocks can hold large ones later. Nothing is allocated for a block, and all that is known of them lies in the buffer, too.
 */
import { roundUp, type SharedParts } from "./shared-parts.ts";

/** The smallest block. */
export const UNIT_OCTETS = 64;
export const UNIT_WORDS = UNIT_OCTETS / 4;
/** The largest block is a region: 128 KiB. Memory is taken into use by the region. */
const REGION_ORDER = 11;
export const REGION_UNITS = 1 << REGION_ORDER;
export const REGION_OCTETS = REGION_UNITS * UNIT_OCTETS;

/** What the map says of a unit: 0 where no block begins, else one of these with the order of the block. */
const FREE = 0x40;
const USED = 0x80;
const ORDER = 0x0f;

/** Numbers in the part `control`, followed by the first free block of each order. */
const REGIONS_IN_USE = 0;
const UNITS_IN_USE = 1;
const HAND = 2;
const HEADS = 4;
const CONTROL_WORDS = 32;

const NONE = -1;

/** The order of the smallest block of so many octets. */
export function orderFor(octets: number): number {
  const units = Math.ceil(octets / UNIT_OCTETS);
  return units <= 1 ? 0 : 32 - Math.clz32(units - 1);
}

export class BlockMemory {
  /** All blocks: the one that begins at unit `u` has its first word at `u * UNIT_WORDS`. */
  readonly words: Int32Array;
  /** The same memory. */
  readonly octets: Uint8Array;
  readonly regions: number;
  readonly #control: Int32Array;
  readonly #map: Uint8Array;

  /** @param regions how many regions of {@link REGION_OCTETS} there are at the most */
  constructor(parts: SharedParts, regions: number) {
    this.regions = regions;
    this.#control = parts.int32(CONTROL_WORDS);
    this.#map = parts.octets(regions * REGION_UNITS);
    const { words, octets } = parts.words(regions * REGION_UNITS * UNIT_WORDS);
    this.words = words;
    this.octets = octets;
  }

  /** Octets that this takes of a buffer. */
  static octetsFor(regions: number): number {
    return roundUp(4 * CONTROL_WORDS) + roundUp(regions * REGION_UNITS) + roundUp(regions * REGION_OCTETS);
  }

  /** Makes all memory free. To be called once for a new buffer, by who made it. */
  clear(): void {
    // What was never in use is zero, and to write there would have the kernel give memory for it.
    this.#map.fill(0, 0, this.#read(REGIONS_IN_USE) * REGION_UNITS);
    this.#control.fill(0);
    this.#control.fill(NONE, HEADS, HEADS + REGION_ORDER + 1);
  }

  get units(): number {
    return this.regions * REGION_UNITS;
  }

  /** Octets of blocks in use. */
  get octetsInUse(): number {
    return this.#read(UNITS_IN_USE) * UNIT_OCTETS;
  }

  /** Octets that were ever in use: what the kernel has given. */
  get octetsTouched(): number {
    return this.#read(REGIONS_IN_USE) * REGION_OCTETS;
  }

  /** @returns the unit at which the block begins, -1 where none of that size is free */
  allocate(order: number): number {
    let found = order;
    while (found <= REGION_ORDER && this.#read(HEADS + found) === NONE) found++;
    let unit: number;
    if (found <= REGION_ORDER) {
      unit = this.#read(HEADS + found);
      this.#unlink(unit, found);
    } else {
      const region = this.#read(REGIONS_IN_USE);
      if (region === this.regions) return NONE;
      this.#control[REGIONS_IN_USE] = region + 1;
      unit = region * REGION_UNITS;
      found = REGION_ORDER;
    }
    while (found > order) {
      found--;
      this.#link(unit + (1 << found), found);
    }
    this.#map[unit] = USED | order;
    this.#control[UNITS_IN_USE] = this.#read(UNITS_IN_USE) + (1 << order);
    return unit;
  }

  /** Frees a block. Its first two words change. */
  free(unit: number): void {
    let order = this.orderOf(unit);
    let start = unit;
    this.#control[UNITS_IN_USE] = this.#read(UNITS_IN_USE) - (1 << order);
    this.#map[unit] = 0;
    while (order < REGION_ORDER) {
      const buddy = start ^ (1 << order);
      if (this.#map[buddy] !== (FREE | order)) break;
      this.#unlink(buddy, order);
      start &= ~(1 << order);
      order++;
    }
    this.#link(start, order);
  }

  /** Whether a block in use begins there. */
  isBlock(unit: number): boolean {
    return (this.#stateOf(unit) & USED) !== 0;
  }

  orderOf(unit: number): number {
    return this.#stateOf(unit) & ORDER;
  }

  /**
   * The block in use that lies at the hand or behind it; the hand moves on to what follows. The hand goes round all memory that was ever in
   * use, so who looks for a block that can be spared comes by all of them.
   * @returns its unit, -1 where there is none in a whole round
   */
  nextBlock(): number {
    const end = this.#read(REGIONS_IN_USE) * REGION_UNITS;
    let unit = this.#read(HAND);
    for (let passed = 0; passed < end; ) {
      if (unit >= end) unit = 0;
      const state = this.#stateOf(unit);
      const length = state === 0 ? 1 : 1 << (state & ORDER);
      if ((state & USED) !== 0) {
        this.#control[HAND] = unit + length;
        return unit;
      }
      unit += length;
      passed += length;
    }
    return NONE;
  }

  /** The first block in use that begins in a part of memory; -1 where none does. */
  firstBlock(from: number, end: number): number {
    let unit = from;
    while (unit < end) {
      const state = this.#stateOf(unit);
      if ((state & USED) !== 0) return unit;
      unit += state === 0 ? 1 : 1 << (state & ORDER);
    }
    return NONE;
  }

  /** The hand moves there. */
  moveHand(unit: number): void {
    this.#control[HAND] = unit;
  }

  #link(unit: number, order: number): void {
    const { words } = this;
    const head = this.#read(HEADS + order);
    words[unit * UNIT_WORDS] = head;
    words[unit * UNIT_WORDS + 1] = NONE;
    if (head !== NONE) words[head * UNIT_WORDS + 1] = unit;
    this.#control[HEADS + order] = unit;
    this.#map[unit] = FREE | order;
  }

  #unlink(unit: number, order: number): void {
    const { words } = this;
    const next = words[unit * UNIT_WORDS] as number;
    const previous = words[unit * UNIT_WORDS + 1] as number;
    if (previous === NONE) this.#control[HEADS + order] = next;
    else words[previous * UNIT_WORDS] = next;
    if (next !== NONE) words[next * UNIT_WORDS + 1] = previous;
    this.#map[unit] = 0;
  }

  #read(at: number): number {
    return this.#control[at] as number;
  }

  #stateOf(unit: number): number {
    return this.#map[unit] as number;
  }
}
