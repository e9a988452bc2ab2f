/** What keeps a process small that serves for long, in the order in which it is done. Each file says what it is for. */
import type { Clock } from "./clock.ts";
import { boundHeap, heapBounds } from "./heap-bounds.ts";
import { holdBackHelpers } from "./helper-threads.ts";
import { mapLargeBuffers } from "./memory-release.ts";
import { takeSmallPages } from "./small-pages.ts";
import { loadSpareMemory, type SpareMemoryWatch, watchSpareMemory } from "./spare-memory.ts";

/** Before anything large is made. */
export async function beginSmall(): Promise<void> {
  await takeSmallPages();
  await mapLargeBuffers();
}

/**
 * Once it serves. The launcher held the young generation small while modules were loaded; under load it may grow.
 * @param limit octets that the process may have, if that is known
 */
export async function staySmall(limit: number | undefined, clock: Clock): Promise<SpareMemoryWatch> {
  boundHeap(heapBounds(limit), clock);
  holdBackHelpers();
  return watchSpareMemory(await loadSpareMemory(), clock);
}
