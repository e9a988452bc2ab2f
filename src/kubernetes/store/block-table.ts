/**
 * Places with a block of octets each, for what a cluster has a hundred thousand of: all of them are a handful of objects to the garbage
 * collector. A place that was given back is used again. What else is known of a place stands in columns of the caller's.
 */
import { OctetArena } from "../../lib/octet-arena.ts";
import { NO_ENTRY, withRoom } from "../../lib/slab/growing-index.ts";

/** Where something stands, as long as it is there. */
export type Slot = number;

/** Octets of the longest block. */
export const MAX_BLOCK_OCTETS = 65_535;

export class BlockTable {
  readonly #arena = new OctetArena();
  /** Of each slot: its block; of a free one the next free one, as a negative number. */
  #blocks: Int32Array = new Int32Array(0);
  #lengths: Uint16Array = new Uint16Array(0);
  /** The latest listing that named it. */
  #listings: Int32Array = new Int32Array(0);
  #end = 0;
  #firstFree = NO_ENTRY;
  #size = 0;
  #latestListing = 0;

  /** How many there are. */
  get size(): number {
    return this.#size;
  }

  /** Octets that all of them take. */
  get octets(): number {
    const columns = this.#blocks.byteLength + this.#lengths.byteLength + this.#listings.byteLength;
    return columns + this.#arena.reservedOctets;
  }

  /** Copies the octets to a new place. @throws RangeError for more than {@link MAX_BLOCK_OCTETS} */
  add(octets: Uint8Array): Slot {
    const slot = this.#takeSlot();
    this.#blocks[slot] = this.#arena.store(octets);
    this.#lengths[slot] = octets.length;
    this.#listings[slot] = 0;
    this.#size++;
    return slot;
  }

  /** Gives a place another block. Whoever reads the former one must have come to an end. */
  replace(slot: Slot, octets: Uint8Array): void {
    const block = this.#arena.store(octets);
    this.#arena.release(this.#blocks[slot] ?? 0, this.length(slot));
    this.#blocks[slot] = block;
    this.#lengths[slot] = octets.length;
  }

  delete(slot: Slot): void {
    this.#arena.release(this.#blocks[slot] ?? 0, this.length(slot));
    this.#blocks[slot] = freeMark(this.#firstFree);
    this.#firstFree = slot;
    this.#size--;
  }

  /** All of them. They may come and go meanwhile. */
  *slots(): Generator<Slot> {
    for (let slot = 0; slot < this.#end; slot++) if (this.#isTaken(slot)) yield slot;
  }

  /** What a block lies in, from {@link start} on: for loops that must make no view. */
  buffer(slot: Slot): Buffer {
    return this.#arena.bufferOf(this.#blocks[slot] ?? 0);
  }

  start(slot: Slot): number {
    return this.#arena.offsetOf(this.#blocks[slot] ?? 0);
  }

  length(slot: Slot): number {
    return this.#lengths[slot] ?? 0;
  }

  /** Whether a block has these octets. */
  equals(slot: Slot, octets: Uint8Array): boolean {
    return this.#arena.equals(this.#blocks[slot] ?? 0, this.length(slot), octets, 0, octets.length);
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
    for (let slot = 0; slot < this.#end; slot++)
      yield this.#isTaken(slot) && (this.#listings[slot] ?? 0) < listing ? slot : undefined;
  }

  #isTaken(slot: Slot): boolean {
    return (this.#blocks[slot] ?? -1) >= 0;
  }

  #takeSlot(): Slot {
    const free = this.#firstFree;
    if (free !== NO_ENTRY) {
      this.#firstFree = markedFree(this.#blocks[free] ?? 0);
      return free;
    }
    const slot = this.#end++;
    this.#blocks = withRoom(this.#blocks, slot);
    this.#lengths = withRoom(this.#lengths, slot);
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
