/**
 * Keeps V8's heap as small as the work allows. On a large machine V8 takes 128 MB for what was made lately and lets the rest grow to a
 * multiple of what is in use: a DNS server has little in use and much that passes by, and is to live beside others.
 */
import { PerformanceObserver } from "node:perf_hooks";
import { getHeapSpaceStatistics } from "node:v8";
import type { Clock } from "../lib/time/clock.ts";
import { isPlain, setRunningFlag } from "./plain.ts";

export interface HeapBounds {
  /** Octets that each half of the young generation may grow to. */
  readonly young: number;
  /** Percent of what is in use by which the old generation grows before it is collected. */
  readonly growth: number;
}

/**
 * Bounds for a process that may have so many octets. Where memory is short the old generation is collected more often. Little is promoted
 * under load (`linked-list.ts` says why), so that costs no CPU that could be measured.
 */
export function heapBounds(limit: number = Number.POSITIVE_INFINITY): HeapBounds {
  return { young: YOUNG, growth: limit < 256 * MEBIBYTE ? 20 : 25 };
}

const MEBIBYTE = 1024 * 1024;
const YOUNG = 2 * MEBIBYTE;

/** Milliseconds. */
const LOOK_EVERY = 1_000;

/**
 * Puts bounds to the heap of a process that runs. The young generation begins small, grows when there is traffic, and is made small again where V8
 * was told to save memory, or has had little to do.
 * @returns ends the watch
 */
export function boundHeap({ young, growth: percent }: HeapBounds, clock: Pick<Clock, "every">): () => void {
  setRunningFlag(`--heap-growing-percent=${percent}`);
  freeCompilationsAtOnce();
  collectYoungMeanwhile();
  keepCompiled();
  leaveObjects();
  const growth = new YoungGrowth(young);
  growth.look();
  const timer = clock.every(LOOK_EVERY, () => growth.look());
  return () => {
    timer.cancel();
    growth.end();
  };
}

/**
 * Lets the young generation grow to its bound. V8 has none that could be set while it runs, only a factor, which it reads at each collection: so the factor
 * is one that leads there in a step, and 1 for as long as it is there. Collections are watched until then alone, because to hear of one takes 50 µs or more.
 */
export class YoungGrowth {
  readonly #young: number;
  readonly #observer = new PerformanceObserver(() => this.look());
  #factor = 0;
  #isWatched = false;

  /** @param young octets of each half */
  constructor(young: number = YOUNG) {
    this.#young = young;
  }

  /** Goes by how large it is now. Where it may grow, what somebody else said since holds. */
  look(): void {
    // Nothing could be set.
    if (isPlain()) return;
    const factor = growthFactor(this.#young);
    // Where it may not, nothing holds that was said elsewhere: V8 would go on to halves of 16 MB.
    if (factor === 1 || factor !== this.#factor) setRunningFlag(`--semi-space-growth-factor=${factor}`);
    this.#factor = factor;
    if (this.#isWatched === factor > 1) return;
    this.#isWatched = factor > 1;
    if (this.#isWatched) this.#observer.observe({ entryTypes: ["gc"] });
    else this.#observer.disconnect();
  }

  /** As {@link look}, whatever was said elsewhere. */
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
 * Has what the compiler Maglev needed for a function freed as soon as the function is done. V8 leaves that to its helpers, behind what is still to
 * be compiled: when the first queries come, some hundred finished jobs wait for it with 0.3 MB each. V8 reads the flag whenever it finishes one; a V8
 * without it would say so on standard error, and go on.
 */
function freeCompilationsAtOnce(): void {
  setRunningFlag("--no-maglev-destroy-on-background");
}

/**
 * Has V8 go on to collect young objects while it marks those of the whole heap. That was the default up to Node 20, and no longer is in
 * Node 24: there the young generation grows until marking is over (to 4 to 6 MB at 60,000 queries/s over TCP), and what was written to an object that is marked already is
 * moved to the old one, be it garbage (2 to 3 MB). That takes up to half of the pause at the end. And whoever asks for a collection of young objects
 * would have marking ended at once, in a pause of 15 to 40 ms.
 */
export function collectYoungMeanwhile(): void {
  setRunningFlag("--no-separate-gc-phases");
}

/** Collections of the whole heap in which a function was not called, until what it was compiled to is thrown away. */
const COLLECTIONS_UNUSED = 1_000;

/**
 * Has V8 keep what functions were compiled to. By default it throws that away after some six collections of the whole heap in which a function was not called: there
 * are as many in the start, and in four seconds under load. A path that was taken a moment ago, by a rehearsal or by the last load, was then parsed and
 * compiled anew within one turn of the event loop. All of the program's bytecode is less than 2 MB.
 */
function keepCompiled(): void {
  setRunningFlag(`--bytecode-old-age=${COLLECTIONS_UNUSED}`);
}

/**
 * Has V8 leave objects of the old generation where they are. It moves them together in the pause at the end of a collection, for up to 4 MiB of pages (up to
 * 8 ms of some 11), and up to 12 MiB where it saves memory. What lies between the objects is filled with new ones instead. That V8 moves them in a server at rest
 * alone is no way out: whether it will is settled when a collection begins, and it ends under the load that has come meanwhile, with 7 to 9 ms.
 */
function leaveObjects(): void {
  setRunningFlag("--no-compact");
}

/** The factor of V8's that has the young generation grow to its bound in one step: 1 where it is there. */
function growthFactor(young: number): number {
  return Math.max(1, Math.floor(young / youngHalf()));
}

/** Octets, in whole MiB: what is used and what is free of the half that is in use, which has some of each page for itself. */
function youngHalf(): number {
  const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space");
  const octets = (young?.space_used_size ?? 0) + (young?.space_available_size ?? 0);
  return Math.max(1, Math.ceil(octets / MEBIBYTE)) * MEBIBYTE;
}
