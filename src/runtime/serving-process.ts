/** The steps that keep a long-running process small, in order. Each file explains its own. */
import type { Clock } from "../lib/time/clock.ts";
import { boundHeap, heapBounds } from "./heap-bounds.ts";
import { holdBackHelpers } from "./helper-threads.ts";
import { keepShapes } from "./kept-shapes.ts";
import { mapLargeBuffers } from "./memory-release.ts";
import { type MemoryMapping, readLastingMappings } from "./program-pages.ts";
import { takeSmallPages } from "./small-pages.ts";
import { loadSpareMemory, type SpareMemoryWatch, watchSpareMemory } from "./spare-memory.ts";

/** The state from before other threads existed, for {@link staySmall}. */
export interface SmallBeginning {
  readonly lasting: readonly MemoryMapping[];
}

/** What a server holds on to for as long as it serves. */
export interface SmallProcess extends SpareMemoryWatch {
  readonly shapes: readonly object[];
}

/** Call it before anything large is made, and before any other thread is started. */
export async function beginSmall(): Promise<SmallBeginning> {
  await takeSmallPages();
  await mapLargeBuffers();
  // A process that may not read its own mappings keeps its pages.
  const lasting = await readLastingMappings().catch(() => []);
  return { lasting };
}

/**
 * Call it once the server answers. The launcher kept the young generation small while modules were loaded; under load
 * it may grow.
 * @param limit of the process in bytes, if it is known
 */
export async function staySmall(
  { lasting }: SmallBeginning,
  limit: number | undefined,
  clock: Clock,
): Promise<SmallProcess> {
  boundHeap(heapBounds(limit), clock);
  holdBackHelpers();
  return { ...watchSpareMemory(await loadSpareMemory(lasting), clock), shapes: keepShapes() };
}
