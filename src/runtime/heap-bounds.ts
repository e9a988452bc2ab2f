/**
 * Keeps V8's heap as small as the work allows. On a large machine V8 takes a large young generation and lets the rest
 * grow to a multiple of the live data: a DNS server has little live data and much garbage, and shares the machine.
 */
import { PerformanceObserver } from "node:perf_hooks";
import { getHeapSpaceStatistics } from "node:v8";
import type { Clock, Timer } from "../lib/time/clock.ts";
import { isPlain, setRunningFlag } from "./plain.ts";

export interface HeapBounds {
  /** Bytes that each half of the young generation may grow to. */
  readonly young: number;
  /** Percent of the live data by which the old generation grows before it is collected. */
  readonly growth: number;
}

/**
 * Bounds for a process with this memory limit. If memory is short the old generation is collected more often. Little
 * is promoted under load (see `linked-list.ts`), so that costs hardly any CPU.
 */
export function heapBounds(limit: number = Number.POSITIVE_INFINITY): HeapBounds {
  return { young: YOUNG, growth: limit < 256 * MEBIBYTE ? 20 : 25 };
}

const MEBIBYTE = 1024 * 1024;
const YOUNG = 2 * MEBIBYTE;

/** Milliseconds. */
const LOOK_EVERY = 1_000;

/**
 * Bounds the heap of a running process. The young generation starts small, grows under traffic, and shrinks again
 * when V8 saves memory or has had little to do.
 * @returns a function that ends the watch
 */
export function boundHeap(
  { young, growth: percent }: HeapBounds,
  clock: Pick<Clock, "after" | "every">,
): () => void {
  setRunningFlag(`--heap-growing-percent=${percent}`);
  freeCompilationsAtOnce();
  collectYoungMeanwhile();
  keepCompiled();
  leaveObjects();
  const reducer = holdReducer(clock);
  const growth = new YoungGrowth(young);
  growth.look();
  const timer = clock.every(LOOK_EVERY, () => growth.look());
  return () => {
    timer.cancel();
    reducer.cancel();
    growth.end();
  };
}

/**
 * Lets the young generation grow to its bound. In a running process V8 has no setting for that bound, only a growth
 * factor, which it reads at each collection: so the factor is set to reach the bound in one step, and to 1 at the
 * bound. Collections are observed only until then, because observing them is slow.
 */
export class YoungGrowth {
  readonly #young: number;
  readonly #observer = new PerformanceObserver(() => this.look());
  #factor = 0;
  #isWatched = false;

  /** @param young bytes of each half */
  constructor(young: number = YOUNG) {
    this.#young = young;
  }

  /**
   * Sets V8's growth factor from the current size. Where growth is allowed, a value that other code has set is left
   * alone.
   */
  look(): void {
    // Flags cannot be set.
    if (isPlain()) return;
    const factor = growthFactor(this.#young);
    // At the bound, values of other code are overwritten: V8 would go on to halves of 16 MB.
    if (factor === 1 || factor !== this.#factor) setRunningFlag(`--semi-space-growth-factor=${factor}`);
    this.#factor = factor;
    if (this.#isWatched === factor > 1) return;
    this.#isWatched = factor > 1;
    if (this.#isWatched) this.#observer.observe({ entryTypes: ["gc"] });
    else this.#observer.disconnect();
  }

  /** Like {@link look}, and overwrites values of other code. */
  begin(): void {
    this.#factor = 0;
    this.look();
  }

  end(): void {
    this.#observer.disconnect();
    this.#isWatched = false;
  }
}

/**
 * Makes V8 free the memory of the compiler Maglev as soon as a function is compiled. By default its helper threads do
 * that after all pending compilations: at the first queries, hundreds of finished jobs would keep their memory. V8
 * reads the flag whenever it finishes a job. A V8 without the flag prints a warning to standard error, and goes on.
 */
function freeCompilationsAtOnce(): void {
  setRunningFlag("--no-maglev-destroy-on-background");
}

/**
 * Makes V8 collect young objects while it marks the whole heap, as was the default up to Node 20. In Node 24 the
 * young generation grows until marking is over, and objects written to an already marked object are promoted, garbage
 * included, which lengthens the pause at the end. And a request for a collection of young objects would finish
 * marking at once, in a long pause.
 */
export function collectYoungMeanwhile(): void {
  setRunningFlag("--no-separate-gc-phases");
}

/** Full collections in which a function was not called, until its compiled code is dropped. */
const COLLECTIONS_UNUSED = 1_000;

/**
 * Makes V8 keep compiled functions. By default it drops them after some six full collections without a call: the
 * start alone has that many, and so have a few seconds under load. A recently used path, from a rehearsal or the last
 * load, was then parsed and compiled again within one turn of the event loop. All bytecode of the program is small.
 */
function keepCompiled(): void {
  setRunningFlag(`--bytecode-old-age=${COLLECTIONS_UNUSED}`);
}

/**
 * Stops V8 from moving objects of the old generation. It moves them together in the pause at the end of a collection,
 * which takes most of that pause. The gaps between objects are filled with new objects instead. Letting V8 move them
 * only in an idle server does not help: it decides when a collection begins, and the collection may end under load.
 */
function leaveObjects(): void {
  setRunningFlag("--no-compact");
}

/** Milliseconds from the start. V8 would collect some 10 and 20 s after it. */
const REDUCER_HELD = 60_000;
/** V8's default of `--memory-reducer-gc-count`. */
const REDUCER_COLLECTIONS = 2;

/**
 * Keeps V8 from collecting the whole heap to save memory soon after the start: the server does that itself once all is
 * listed (`memory-release.ts`). V8 then found 0.1 MB in collections of 50 to 100 ms of CPU, which was an eighth of what
 * it takes to load a cluster of 3,000 Services.
 */
export function holdReducer(clock: Pick<Clock, "after">, setFlag = setRunningFlag): Timer {
  setFlag("--memory-reducer-gc-count=0");
  return clock.after(REDUCER_HELD, () => setFlag(`--memory-reducer-gc-count=${REDUCER_COLLECTIONS}`));
}

/** The growth factor that takes the young generation to its bound in one step: 1 at the bound. */
function growthFactor(young: number): number {
  return Math.max(1, Math.floor(young / youngHalf()));
}

/** Bytes, in whole MiB: the used and the free part of the active half, whose pages have an overhead. */
function youngHalf(): number {
  const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space");
  const octets = (young?.space_used_size ?? 0) + (young?.space_available_size ?? 0);
  return Math.max(1, Math.ceil(octets / MEBIBYTE)) * MEBIBYTE;
}
