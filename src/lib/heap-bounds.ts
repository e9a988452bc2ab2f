/**
 * Keeps V8's heap as small as the work allows. On a large machine V8 takes 128 MB for what was made lately and lets the rest grow to a
 * multiple of what is in use: a DNS server has little in use and much that passes by, and is to live beside others.
 */
import { PerformanceObserver } from "node:perf_hooks";
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";

export interface HeapBounds {
  /** Octets that the young generation may grow to: two halves, one of which is in use. */
  readonly young: number;
  /** Percent of what is in use by which the old generation grows before it is collected. */
  readonly growth: number;
}

/**
 * Bounds for a process that may have so many octets. Where memory is short the old generation is collected more often. Little is promoted
 * under load (`linked-list.ts` says why), so that costs no CPU that could be measured.
 */
export function heapBounds(limit: number = Number.POSITIVE_INFINITY): HeapBounds {
  return { young: 8 * MEBIBYTE, growth: limit < 256 * MEBIBYTE ? 20 : 25 };
}

const MEBIBYTE = 1024 * 1024;

/**
 * Puts bounds to the heap of a process that runs. The young generation begins small and grows when there is traffic; V8 has no bound for it
 * that could be set by then, only a factor, so the factor is one that leads there in a step, and goes back to 1 at the next collection.
 * @returns ends the watch
 */
export function boundHeap({ young, growth }: HeapBounds): () => void {
  setFlagsFromString(`--heap-growing-percent=${growth}`);
  freeCompilationsAtOnce();
  const size = youngSize();
  if (size >= young) return () => undefined;
  setFlagsFromString(`--semi-space-growth-factor=${Math.max(2, Math.floor(young / size))}`);
  const observer = new PerformanceObserver(() => {
    if (youngSize() <= size) return;
    setFlagsFromString("--semi-space-growth-factor=1");
    observer.disconnect();
  });
  observer.observe({ entryTypes: ["gc"] });
  return () => observer.disconnect();
}

/**
 * Has what the compiler Maglev needed for a function freed as soon as the function is done. V8 leaves that to its helpers, behind what is still to
 * be compiled: when the first queries come, some hundred finished jobs wait for it with 0.3 MB each. V8 reads the flag whenever it finishes one; a V8
 * without it would say so on standard error, and go on.
 */
function freeCompilationsAtOnce(): void {
  setFlagsFromString("--no-maglev-destroy-on-background");
}

function youngSize(): number {
  return getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space")?.space_size ?? 0;
}
