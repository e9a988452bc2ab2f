/** What keeps a process small that serves for long, in the order in which it is done. Each file says what it is for. */
import type { Clock } from "../lib/time/clock.ts";
import { boundHeap, heapBounds } from "./heap-bounds.ts";
import { holdBackHelpers } from "./helper-threads.ts";
import { mapLargeBuffers } from "./memory-release.ts";
import { type MemoryMapping, readLastingMappings } from "./program-pages.ts";
import { takeSmallPages } from "./small-pages.ts";
import { loadSpareMemory, type SpareMemoryWatch, watchSpareMemory } from "./spare-memory.ts";

/** What {@link staySmall} has to know of the time before there were other threads. */
export interface SmallBeginning {
  readonly lasting: readonly MemoryMapping[];
}

/** Before anything large is made, and before any other thread is started. */
export async function beginSmall(): Promise<SmallBeginning> {
  await takeSmallPages();
  await mapLargeBuffers();
  // A process that may not read its own mappings keeps its pages.
  const lasting = await readLastingMappings().catch(() => []);
  return { lasting };
}

/**
 * Once it serves. The launcher held the young generation small while modules were loaded; under load it may grow.
 * @param limit octets that the process may have, if that is known
 */
export async function staySmall(
  { lasting }: SmallBeginning,
  limit: number | undefined,
  clock: Clock,
): Promise<SpareMemoryWatch> {
  boundHeap(heapBounds(limit), clock);
  holdBackHelpers();
  return watchSpareMemory(await loadSpareMemory(lasting), clock);
}
