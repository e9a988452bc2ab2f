/**
 * Places with a block of octets each, for what a cluster has a hundred thousand of: all of them are a handful of objects to the garbage
 * collector. A place that was given back is used again. What else is known of a place stands in columns of the caller's.
 */
import { OctetArena } from "../../../lib/collections/octet-arena.ts";
import { type Column, ColumnMemory } from "../../../lib/collections/slab/column-memory.ts";
import { NO_ENTRY, withRoom } from "../../../lib/collections/slab/growing-index.ts";

/** Where something stands, as long as it is there. */
export type Slot = number;

/** Octets of the longest block. */
export const MAX_BLOCK_OCTETS = 65_535;

export class BlockTable {
  readonly #arena: OctetArena;
  /** Of each slot: its block; of a free one the next free one, as a negative number. */
  readonly #blocks: Column<Int32Array>;
  readonly #lengths: Column<Uint16Array>;
  /** The slot behind the last one. */
  readonly #end: Column<Int32Array>;
  /** The latest listing that named it. */
  #listings: Int32Array = new Int32Array(0);
  #firstFree = NO_ENTRY;
  #size = 0;
  #latestListing = 0;

  readonly #hasArena: boolean;

  /**
   * @param memory where it lies
   * @param arena what blocks lie in, if that is not for this table alone
   */
  constructor(memory: ColumnMemory = new ColumnMemory(), arena?: OctetArena) {
    this.#hasArena = arena === undefined;
    this.#arena = arena ?? new OctetArena(memory);
    this.#blocks = memory.int32();
    this.#lengths = memory.uint16();
    this.#end = memory.int32(1);
  }

  /** How many there are. */
  get size(): number {
    return this.#size;
  }

  /** Octets that all of them take, without an arena that is for others, too. */
  get octets(): number {
    const columns = this.#blocks.octets + this.#lengths.octets + this.#listings.byteLength;
    return columns + (this.#hasArena ? this.#arena.reservedOctets : 0);
  }

  /** Copies the octets to a new place. @throws RangeError for more than {@link MAX_BLOCK_OCTETS} */
  add(octets: Uint8Array): Slot {
    const slot = this.#takeSlot();
    this.#blocks.cells[slot] = this.#arena.store(octets);
    this.#lengths.cells[slot] = octets.length;
    this.#listings[slot] = 0;
    this.#size++;
    return slot;
  }

  /** Gives a place another block. Readers of the former block must have finished. */
  replace(slot: Slot, octets: Uint8Array): void {
    const block = this.#arena.store(octets);
    this.#arena.release(this.#block(slot), this.length(slot));
    this.#blocks.cells[slot] = block;
    this.#lengths.cells[slot] = octets.length;
  }

  delete(slot: Slot): void {
    this.#arena.release(this.#block(slot), this.length(slot));
    this.#blocks.cells[slot] = freeMark(this.#firstFree);
    this.#firstFree = slot;
    this.#size--;
  }

  /** All of them. They may come and go meanwhile. */
  *slots(): Generator<Slot> {
    for (let slot = 0; slot < this.#endSlot; slot++) if (this.#isTaken(slot)) yield slot;
  }

  /** What a block lies in, from {@link start} on: for loops that must make no view. */
  buffer(slot: Slot): Buffer {
    return this.#arena.bufferOf(this.#block(slot));
  }

  start(slot: Slot): number {
    return this.#arena.offsetOf(this.#block(slot));
  }

  length(slot: Slot): number {
    return this.#lengths.cells[slot] ?? 0;
  }

  /** Whether a block has these octets. */
  equals(slot: Slot, octets: Uint8Array): boolean {
    return this.#arena.equals(this.#block(slot), this.length(slot), octets, 0, octets.length);
  }

  /** Begins a listing. @returns its number */
  beginListing(): number {
    return ++this.#latestListing;
  }

  /** Notes that a listing names what stands there. */
  name(slot: Slot, listing: number): void {
    if ((this.#listings[slot] ?? 0) < listing) this.#listings[slot] = listing;
  }

  /** What neither a listing nor a later one has named, and undefined for each place without. They may come and go meanwhile. */
  *unnamed(listing: number): Generator<Slot | undefined> {
    for (let slot = 0; slot < this.#endSlot; slot++)
      yield this.#isTaken(slot) && (this.#listings[slot] ?? 0) < listing ? slot : undefined;
  }

  get #endSlot(): number {
    return this.#end.cells[0] ?? 0;
  }

  #block(slot: Slot): number {
    return this.#blocks.cells[slot] ?? 0;
  }

  #isTaken(slot: Slot): boolean {
    return (this.#blocks.cells[slot] ?? -1) >= 0;
  }

  #takeSlot(): Slot {
    const free = this.#firstFree;
    if (free !== NO_ENTRY) {
      this.#firstFree = markedFree(this.#block(free));
      return free;
    }
    const slot = this.#endSlot;
    this.#end.cells[0] = slot + 1;
    this.#blocks.reserve(slot);
    this.#lengths.reserve(slot);
    this.#listings = withRoom(this.#listings, slot);
    return slot;
  }
}

/** Free places are chained by negative numbers. */
export function freeMark(next: number): number {
  return -2 - next;
}

export function markedFree(mark: number): number {
  return -2 - mark;
}
