/** How much memory the two caches take at the most, and what the least is that they can do with. */
import { REGION_OCTETS } from "../../lib/collections/slab/block-memory.ts";
import { type SlabBounds, slabOctets } from "./slab-shape.ts";

/**
 * The capacity of 256 shards that share what was asked for and have 4 entries at the least, as CoreDNS counts it.
 * @param asked entries
 */
export function effectiveCapacity(asked: number = DEFAULT_CAPACITY): number {
  return SHARDS * Math.max(Math.floor(Math.min(asked, MOST_ENTRIES) / SHARDS), 4);
}

const DEFAULT_CAPACITY = 10_000;
const SHARDS = 256;
/** Tables of more would not fit into a buffer. */
const MOST_ENTRIES = 1 << 24;

/** Octets of memory that two caches can make use of, whatever their capacities are. */
export function largestMemory(success: number, denial: number): number {
  // A region holds one answer of 64 KiB at the least.
  const largest = (capacity: number): number =>
    slabOctets({ capacity, regions: Math.min(capacity, MOST_REGIONS) });
  return largest(success) + largest(denial);
}

export interface CacheBounds {
  readonly success: SlabBounds;
  readonly denial: SlabBounds;
}

/**
 * @param success capacity of the cache for successes, in entries
 * @param memory octets for both caches together, with all that belongs to them; `undefined` for a usual amount
 */
export function cacheBounds(success: number, denial: number, memory: number | undefined): CacheBounds {
  if (memory === undefined) {
    return {
      success: { capacity: success, regions: usualRegions(success) },
      denial: { capacity: denial, regions: usualRegions(denial) },
    };
  }
  const [most, mostDenials] = capacitiesWithin(success, denial, memory);
  const spare = Math.max(0, memory - smallestMemory(most, mostDenials));
  const each = slabOctets({ capacity: 1, regions: 2 }) - slabOctets({ capacity: 1, regions: 1 });
  const more = Math.floor(spare / each);
  const share = Math.round((more * most) / (most + mostDenials));
  return {
    success: { capacity: most, regions: Math.min(1 + share, MOST_REGIONS) },
    denial: { capacity: mostDenials, regions: Math.min(1 + more - share, MOST_REGIONS) },
  };
}

/** Tables for more entries than there is room for would leave no room for entries. */
function capacitiesWithin(success: number, denial: number, memory: number): readonly [number, number] {
  const capacities: [success: number, denial: number] = [success, denial];
  for (;;) {
    const [most, mostDenials] = capacities;
    const wanted = smallestMemory(most, mostDenials) + USUAL_ENTRY * (most + mostDenials);
    const larger = most >= mostDenials ? 0 : 1;
    const halved = effectiveCapacity(capacities[larger] / 2);
    if (wanted <= memory || halved >= capacities[larger]) return capacities;
    capacities[larger] = halved;
  }
}

/** Octets of an entry for a short name and one address. */
const USUAL_ENTRY = 128;

/**
 * How many octets the caches take at the most, `undefined` for a usual amount. One `memory` is not to have the system end the process: it counts up to half of what the
 * process may have. Where nobody says anything, that is a quarter, if the usual amount is more.
 * @param asked octets that the Corefile allows
 * @param limit octets that the process may have
 */
export function memoryWithin(
  success: number,
  denial: number,
  asked: number | undefined,
  limit: number | undefined,
): number | undefined {
  if (limit === undefined) return asked;
  if (asked !== undefined) return Math.min(asked, Math.floor(limit / 2));
  const usual = cacheBounds(success, denial, undefined);
  if (slabOctets(usual.success) + slabOctets(usual.denial) <= limit / 4) return undefined;
  return Math.floor(limit / 4);
}

/** Octets for tables of that capacity, and one answer of 64 KiB in each of the two caches. */
export function smallestMemory(success: number, denial: number): number {
  return slabOctets({ capacity: success, regions: 1 }) + slabOctets({ capacity: denial, regions: 1 });
}

/**
 * Memory for answers that are larger than most. Usual ones take 96 to 512 octets; the bound is for who fills the cache with answers of
 * 64 KiB, and memory that nobody fills is not taken.
 */
function usualRegions(capacity: number): number {
  return Math.ceil(Math.min(capacity * OCTETS_PER_ENTRY, MOST_OCTETS) / REGION_OCTETS);
}

const OCTETS_PER_ENTRY = 2048;
/** For one cache, without `memory` in the Corefile. */
const MOST_OCTETS = 1024 ** 3;
/** 4 GiB: places are numbers of 30 bits. */
const MOST_REGIONS = 4 * (1024 ** 3 / REGION_OCTETS);
