/**
 * Gives memory that is no longer in use back to the system. V8 and the C library both keep what they had, for the case that it is needed
 * again: that is right for a server under load, and wrong after something that is done once, such as the first list of a large cluster.
 */
import { constants, PerformanceObserver } from "node:perf_hooks";
import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import { runInNewContext } from "node:vm";
import { collectYoungMeanwhile } from "./heap-bounds.ts";
import type { ProcessLibrary } from "./linux/libc.ts";
import { loadKoffi, setRunningFlag } from "./plain.ts";
import { residentMemory } from "./resident-memory.ts";

export interface MemoryRelease {
  /**
   * Frees what was made lately and is of no use any more: about a millisecond. Octets from sockets lie outside of V8's heap and are freed
   * with the small objects that stand for them, so V8 by itself does so far too late.
   */
  young(): void;
  /** Gives back what is free of the C library's heap: a millisecond or two, on another thread. */
  trim(): Promise<void>;
  /** Octets of buffers outside of V8's heap, garbage included. */
  buffers(): number;
  /** Octets in memory now that are not a part of a file. */
  resident(): number;
  /** As {@link all}, with a turn for each collection: 5 to 10 ms for a heap of 20 MB. For who has nobody to answer meanwhile. */
  allInFewTurns(): Promise<void>;
  /** As {@link all}, in portions: some milliseconds at a time, for more than a second. Resolves when it is done. */
  allInTurns(): Promise<void>;
  /** Frees all that can be, and gives it back. Halts the thread that calls: 50 to 150 ms for a heap of 35 MB. */
  all(): void;
}

type CollectGarbage = (options: {
  readonly type: "minor" | "major";
  readonly execution: "sync";
  /** `last-resort`: collections until nothing more is to be had, and smaller spaces from there on. */
  readonly flavor?: "last-resort";
}) => void;

export async function loadMemoryRelease(): Promise<MemoryRelease> {
  const trim = await loadTrim();
  const trimBeside = await loadTrimBeside();
  const collect = findCollector();
  collectYoungMeanwhile();
  const all = (): void => {
    collect?.({ type: "major", execution: "sync", flavor: "last-resort" });
    trim?.(0);
  };
  return {
    young: () => collect?.({ type: "minor", execution: "sync" }),
    trim: async () => trimBeside?.(),
    buffers: () => process.memoryUsage().arrayBuffers,
    resident: () => residentMemory().own,
    allInTurns: async () => {
      const begin = await loadCollectionInTurns();
      if (begin === undefined) return all();
      for (let time = 0; time < COLLECTIONS; time++) {
        if (time > 0) await delay(SWEEPING, undefined, { ref: false });
        await collectionAfter(begin);
      }
      await trimBeside?.();
    },
    allInFewTurns: async () => {
      for (let time = 0; time < COLLECTIONS; time++) {
        collect?.({ type: "major", execution: "sync" });
        await nextTurn();
      }
      trim?.(0);
    },
    all,
  };
}

/** What weak references held is free after the second one, and a collection that went on already was none that saves memory. */
const COLLECTIONS = 2;
/**
 * Milliseconds in which V8's helpers sweep what a collection left, also where they get little of a processor. Whoever begins the next one before they are done
 * has to do the rest itself, at once: 40 to 80 ms under load.
 */
const SWEEPING = 1_000;
/** `MemoryPressureLevel::kModerate` of V8. */
const MODERATE = 1;

/**
 * What tells V8 that memory is short: it begins to collect all of the heap as it does under load, most of it in portions and on its helpers, and gives pages
 * back in the end.
 * @returns `undefined` where this Node has no such function
 */
async function loadCollectionInTurns(): Promise<(() => void) | undefined> {
  try {
    const koffi = await loadKoffi();
    const library = koffi.load(null);
    const isolate = library.func("_ZN2v87Isolate10GetCurrentEv", "uintptr_t", [])();
    const notify = library.func(
      "_ZN2v87Isolate26MemoryPressureNotificationENS_19MemoryPressureLevelE",
      "void",
      ["uintptr_t", "int"],
    );
    return () => void notify(isolate, MODERATE);
  } catch {
    // koffi is an optional dependency.
    return undefined;
  }
}

/** Resolves at the end of the next collection of the whole heap. */
async function collectionAfter(begin: () => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const observer = new PerformanceObserver((list) => {
    if (list.getEntries().some((entry) => kindOf(entry) === constants.NODE_PERFORMANCE_GC_MAJOR)) resolve();
  });
  observer.observe({ entryTypes: ["gc"] });
  begin();
  await promise;
  observer.disconnect();
}

/** Of an entry for a collection. */
export function kindOf(entry: object): unknown {
  const detail: unknown = "detail" in entry ? entry.detail : undefined;
  return typeof detail === "object" && detail !== null && "kind" in detail ? detail.kind : undefined;
}

/** Only contexts that are made under this flag have the function, so one is made for it. */
function findCollector(): CollectGarbage | undefined {
  setRunningFlag("--expose-gc");
  try {
    const found: unknown = runInNewContext("globalThis.gc");
    return isCollector(found) ? found : undefined;
  } finally {
    setRunningFlag("--no-expose-gc");
  }
}

function isCollector(value: unknown): value is CollectGarbage {
  return typeof value === "function";
}

/**
 * mallopt(3): from how many octets on memory is a mapping of its own, which takes no memory where it was never written, and goes back to the
 * system when it is freed. The batches of a UDP socket and the tables of the upstreams' ids are as large: with them in a heap, each thread had 1 MB
 * of zeros.
 */
const M_MMAP_THRESHOLD = -3;
const MAPPED_FROM = 128 * 1024;
/** MADV_DONTNEED of madvise(2): what was written to the pages is gone. */
export const DONT_NEED = 4;
const PAGE = 4096n;

/** madvise(2) for whole pages of this process. */
export type MemoryAdvice = (start: bigint, octets: bigint, advice: number) => number;

/** @returns `undefined` where the system has no such call */
export async function loadMemoryAdvice(): Promise<MemoryAdvice | undefined> {
  if (process.platform !== "linux") return undefined;
  try {
    const koffi = await loadKoffi();
    return koffi.load(null).func("int madvise(uintptr_t, size_t, int)");
  } catch {
    // koffi is an optional dependency.
    return undefined;
  }
}

/**
 * Gives the pages of a buffer back to the system at once, whoever may still refer to it: from then on its octets are 0. For memory that is
 * shared between threads: V8 does not count it, and so takes its time to find that nobody holds it any more.
 * @returns `undefined` where the system has no such call
 */
export async function loadPageRelease(): Promise<((octets: Uint8Array) => void) | undefined> {
  const advise = await loadMemoryAdvice();
  if (advise === undefined) return undefined;
  const koffi = await loadKoffi();
  keepMappings(koffi.load(null));
  return (octets) => {
    const start = BigInt(koffi.address(octets));
    // Whole pages alone: what shares the first and the last one with the buffer is somebody else's.
    const from = ((start + PAGE - 1n) / PAGE) * PAGE;
    const end = ((start + BigInt(octets.length)) / PAGE) * PAGE;
    if (end > from) advise(from, end - from, DONT_NEED);
  };
}

/** For a process that is about to start: see {@link keepMappings}. */
export async function mapLargeBuffers(): Promise<void> {
  // It sets the bound.
  await loadTrim();
}

/**
 * The GNU C library takes the first large mapping that is freed for a sign that there will be more, and from then on cuts buffers of that size
 * out of its heap: they are filled with zeros when they are taken, and never go back. A bound that is said keeps it from that.
 */
function keepMappings(library: ProcessLibrary): void {
  try {
    library.func("int mallopt(int, int)")(M_MMAP_THRESHOLD, MAPPED_FROM);
  } catch {
    // musl has no such function, and no such heap.
  }
}

/** As {@link loadTrim}, on a thread of Node's pool: it takes 2 to 7 ms where much is free. */
export async function loadTrimBeside(): Promise<(() => Promise<void>) | undefined> {
  if (process.platform !== "linux") return undefined;
  try {
    const koffi = await loadKoffi();
    const library = koffi.load(null);
    keepMappings(library);
    const trim = library.func("int malloc_trim(size_t)");
    return () => new Promise((resolve) => void trim.async(0, () => resolve()));
  } catch {
    // koffi is an optional dependency, and musl has no such function.
    return undefined;
  }
}

/** malloc_trim(3) of the GNU C library. Others give back what is free without being asked. */
export async function loadTrim(): Promise<((keep: number) => number) | undefined> {
  if (process.platform !== "linux") return undefined;
  try {
    const koffi = await loadKoffi();
    const library = koffi.load(null);
    keepMappings(library);
    return library.func("int malloc_trim(size_t)");
  } catch {
    // koffi is an optional dependency, and musl has no such function.
    return undefined;
  }
}
