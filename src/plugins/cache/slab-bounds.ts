/** Upper and lower bounds for the memory of the two caches. */
import { REGION_OCTETS } from "../../lib/collections/slab/block-memory.ts";
import { type SlabBounds, slabOctets } from "./slab-shape.ts";

/**
 * The capacity of 256 shards that divide the requested capacity and have at least 4 entries each, as in CoreDNS.
 * @param asked entries
 */
export function effectiveCapacity(asked: number = DEFAULT_CAPACITY): number {
  return SHARDS * Math.max(Math.floor(Math.min(asked, MOST_ENTRIES) / SHARDS), 4);
}

const DEFAULT_CAPACITY = 10_000;
const SHARDS = 256;
/** Larger tables would not fit into a buffer. */
const MOST_ENTRIES = 1 << 24;

/** Bytes of memory that two caches can use, whatever their capacities are. */
export function largestMemory(success: number, denial: number): number {
  // A region holds at least one answer of 64 KiB.
  const largest = (capacity: number): number =>
    slabOctets({ capacity, regions: Math.min(capacity, MOST_REGIONS) });
  return largest(success) + largest(denial);
}

export interface CacheBounds {
  readonly success: SlabBounds;
  readonly denial: SlabBounds;
}

/**
 * @param success capacity of the cache for successes, in entries @param memory bytes for both caches together,
 * overhead included; `undefined` for the default
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

/** Reduces the capacities: tables for more entries would leave no room for the entries themselves. */
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

/** Bytes of an entry for a short name and one address. */
const USUAL_ENTRY = 128;

/**
 * The bound for the caches in bytes, `undefined` for the default. The bound keeps the system from killing the
 * process: `memory` counts up to half of the process's limit. Without `memory` the bound is a quarter of the limit,
 * if the default is more. @param asked bytes that the Corefile allows @param limit memory limit of the process in
 * bytes
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

/** Bytes for tables of these capacities, and one answer of 64 KiB in each of the two caches. */
export function smallestMemory(success: number, denial: number): number {
  return slabOctets({ capacity: success, regions: 1 }) + slabOctets({ capacity: denial, regions: 1 });
}

/**
 * Memory for answers that are larger than most. Typical answers take 96 to 512 bytes. The bound guards against a
 * client that fills the cache with 64 KiB answers; unused memory is never committed.
 */
function usualRegions(capacity: number): number {
  return Math.ceil(Math.min(capacity * OCTETS_PER_ENTRY, MOST_OCTETS) / REGION_OCTETS);
}

const OCTETS_PER_ENTRY = 2048;
/** For one cache, without `memory` in the Corefile. */
const MOST_OCTETS = 1024 ** 3;
/** 4 GiB: places are numbers of 30 bits. */
const MOST_REGIONS = 4 * (1024 ** 3 / REGION_OCTETS);
