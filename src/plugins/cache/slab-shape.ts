/** How large a slab is, and how it is handed to other threads. */
import {
  BlockMemory,
  LEAST_UNITS,
  REGION_OCTETS,
  UNIT_OCTETS,
} from "../../lib/collections/slab/block-memory.ts";
import { HashIndex } from "../../lib/collections/slab/hash-index.ts";
import { roundUp } from "../../lib/collections/slab/shared-parts.ts";
import { NameTree } from "./name-tree.ts";

/** A slab as other threads may have it: a message to them. */
export interface SharedSlab {
  readonly buffer: SharedArrayBuffer;
  readonly bounds: SlabBounds;
  readonly secret: number;
  /** Milliseconds from the start of the time that all threads share to that of the clock by which entries are stamped. */
  readonly clockStart: number;
}

/** How large a slab may become. */
export interface SlabBounds {
  /** Entries. */
  readonly capacity: number;
  /** Regions of memory for the entries: see `BlockMemory`. */
  readonly regions: number;
}

/** Words of the part `control`, the lock's own included. */
export const CONTROL_WORDS = 16;

/** Marks that so many octets of entries have: one for each place in which no more than one entry begins. */
export function marksFor(octets: number): number {
  return octets / (LEAST_UNITS * UNIT_OCTETS);
}

/** Octets that a slab takes at the most, all that belongs to it included. */
export function slabOctets({ capacity, regions }: SlabBounds): number {
  return (
    roundUp(4 * CONTROL_WORDS) +
    BlockMemory.octetsFor(regions) +
    HashIndex.octetsFor(capacity) +
    NameTree.octetsFor(capacity) +
    roundUp(marksFor(regions * REGION_OCTETS)) +
    roundUp(4 * regions)
  );
}

/** Milliseconds of a clock that all threads of a process share. */
export function sharedTime(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}
