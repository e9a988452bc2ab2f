/** The size of a slab, and the message that shares it with other threads. */
import {
  BlockMemory,
  LEAST_UNITS,
  REGION_OCTETS,
  UNIT_OCTETS,
} from "../../lib/collections/slab/block-memory.ts";
import { HashIndex } from "../../lib/collections/slab/hash-index.ts";
import { roundUp } from "../../lib/collections/slab/shared-parts.ts";
import { NameTree } from "./name-tree.ts";

/** A slab as a message to other threads. */
export interface SharedSlab {
  readonly buffer: SharedArrayBuffer;
  readonly bounds: SlabBounds;
  readonly secret: number;
  /** Milliseconds from the start of the clock that all threads share to the start of the clock that stamps entries. */
  readonly clockStart: number;
}

/** Bounds for the size of a slab. */
export interface SlabBounds {
  /** Entries. */
  readonly capacity: number;
  /** Regions of memory for the entries: see `BlockMemory`. */
  readonly regions: number;
}

/** Words of the part `control`, the lock's own included. */
export const CONTROL_WORDS = 16;

/** Number of marks for `octets` bytes of entries: one for each place in which at most one entry begins. */
export function marksFor(octets: number): number {
  return octets / (LEAST_UNITS * UNIT_OCTETS);
}

/** Upper bound for the bytes of a slab, all parts included. */
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
