/**
 * Returns unused memory to the system. V8 and the C library both keep freed memory for reuse: that is right for a
 * server under load, and wrong after work that is done once, such as the first list of a large cluster.
 */
import { constants, PerformanceObserver } from "node:perf_hooks";
import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import { getHeapStatistics } from "node:v8";
import { runInNewContext } from "node:vm";
import { collectYoungMeanwhile } from "./heap-bounds.ts";
import type { ProcessLibrary } from "./linux/libc.ts";
import { loadKoffi, setRunningFlag } from "./plain.ts";
import { residentMemory } from "./resident-memory.ts";

export interface MemoryRelease {
  /**
   * Frees young garbage. Buffers from sockets are outside V8's heap and are freed with their small objects, so V8 by
   * itself collects them far too late.
   */
  young(): void;
  /** Returns the free memory of the C library's heap, on another thread. */
  trim(): Promise<void>;
  /** Bytes of buffers outside V8's heap, garbage included. */
  buffers(): number;
  /** Resident memory in bytes, without pages of files. */
  resident(): number;
  /** Like {@link all}, with an event-loop turn for each collection. Use it only while no query is being served. */
  allInFewTurns(): Promise<void>;
  /** Like {@link all}, in portions of some milliseconds. Resolves when it is done. */
  allInTurns(): Promise<void>;
  /** Frees everything that can be freed. Blocks the calling thread for a long time. */
  all(): void;
}

type CollectGarbage = (options: {
  readonly type: "minor" | "major";
  readonly execution: "sync";
  /** `last-resort`: collects until nothing more can be freed, and shrinks the spaces. */
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
      for (let time = 1; ; time++) {
        const before = heapSize();
        await collectionAfter(begin);
        if (time === COLLECTIONS || !isWorthAnother(before, heapSize())) break;
        await delay(SWEEPING, undefined, { ref: false });
      }
      await trimBeside?.();
    },
    allInFewTurns: async () => {
      for (let time = 1; time <= COLLECTIONS; time++) {
        const { used } = heapSize();
        collect?.({ type: "major", execution: "sync" });
        await nextTurn();
        if (used - heapSize().used < LITTLE * used) break;
      }
      trim?.(0);
    },
    all,
  };
}

/** At most: see {@link isWorthAnother}. */
const COLLECTIONS = 2;
/** Share of the used heap. A collection that frees less leaves little for the next one, which takes 40 to 80 ms of CPU. */
const LITTLE = 1 / 8;
/**
 * Milliseconds in which V8's helpers sweep after a collection, even with little CPU. If the next collection begins
 * before they are done, it has to finish their work itself, in a long pause.
 */
const SWEEPING = 1_000;
/** `MemoryPressureLevel::kModerate` of V8. */
const MODERATE = 1;

/**
 * Signals memory pressure to V8: it collects the whole heap as under load, mostly in portions and on its helpers, and
 * releases pages in the end.
 * @returns `undefined` if this Node has no such function
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

/** Bytes of V8's heap. */
export interface HeapSize {
  readonly used: number;
  /** With the free memory that V8 holds. */
  readonly total: number;
}

function heapSize(): HeapSize {
  const { used_heap_size: used, total_heap_size: total } = getHeapStatistics();
  return { used, total };
}

/**
 * Whether another collection would free much: the targets of weak references go one collection after what referred to
 * them. And a collection that was already running when it was asked for does not save memory: V8 then holds as much as
 * before.
 */
export function isWorthAnother(before: HeapSize, after: HeapSize): boolean {
  return after.total >= before.total || before.used - after.used >= LITTLE * before.used;
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

/** The kind of a garbage-collection entry. */
export function kindOf(entry: object): unknown {
  const detail: unknown = "detail" in entry ? entry.detail : undefined;
  return typeof detail === "object" && detail !== null && "kind" in detail ? detail.kind : undefined;
}

/** Only contexts that are made with this flag have the function, so one is made for it. */
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
 * mallopt(3): the size in bytes above which an allocation is a mapping of its own, which takes no memory where it was
 * never written, and returns to the system when it is freed. The batches of a UDP socket and the id tables of
 * upstreams are that large: in a heap they would take memory for zeros in each thread.
 */
const M_MMAP_THRESHOLD = -3;
const MAPPED_FROM = 128 * 1024;
/** MADV_DONTNEED of madvise(2): drops the contents of the pages. */
export const DONT_NEED = 4;
const PAGE = 4096n;

/** madvise(2) for whole pages of this process. */
export type MemoryAdvice = (start: bigint, octets: bigint, advice: number) => number;

/** @returns `undefined` if the system has no such call */
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
 * Returns the pages of a buffer to the system at once, even if it is still referenced: from then on its octets are 0.
 * For memory that is shared between threads: V8 does not count it, and so is slow to collect it.
 * @returns `undefined` if the system has no such call
 */
export async function loadPageRelease(): Promise<((octets: Uint8Array) => void) | undefined> {
  const advise = await loadMemoryAdvice();
  if (advise === undefined) return undefined;
  const koffi = await loadKoffi();
  keepMappings(koffi.load(null));
  return (octets) => {
    const start = BigInt(koffi.address(octets));
    // Whole pages only: the first and the last one may be shared with other data.
    const from = ((start + PAGE - 1n) / PAGE) * PAGE;
    const end = ((start + BigInt(octets.length)) / PAGE) * PAGE;
    if (end > from) advise(from, end - from, DONT_NEED);
  };
}

/** Call it in a process that is about to start: see {@link keepMappings}. */
export async function mapLargeBuffers(): Promise<void> {
  // Sets the bound.
  await loadTrim();
}

/**
 * The GNU C library takes the first freed large mapping as a sign that more will follow, and from then on allocates
 * buffers of that size in its heap: they are filled with zeros, and never return to the system. An explicit bound
 * prevents that.
 */
function keepMappings(library: ProcessLibrary): void {
  try {
    library.func("int mallopt(int, int)")(M_MMAP_THRESHOLD, MAPPED_FROM);
  } catch {
    // musl has no such function, and no such heap.
  }
}

/** Like {@link loadTrim}, on a thread of Node's pool, because it is slow if much is free. */
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

/** malloc_trim(3) of the GNU C library. Other libraries return free memory by themselves. */
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
