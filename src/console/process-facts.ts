/** Memory and pauses of this process. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { NowView } from "./api-types.ts";

/** Milliseconds between two samples of the event loop. */
const RESOLUTION = 20;

export class ProcessFacts {
  readonly #delays = monitorEventLoopDelay({ resolution: RESOLUTION });
  /** Nanoseconds, of the previous minute. */
  #before: NowView["pauses"] = { p99: 0, longest: 0 };

  start(): void {
    this.#delays.enable();
  }

  stop(): void {
    this.#delays.disable();
  }

  /** Starts another minute. */
  advance(): void {
    this.#before = this.#measured();
    this.#delays.reset();
  }

  /** @param limit of the process in bytes */
  memory(limit: number | undefined): NowView["memory"] {
    const { rss, heapUsed } = process.memoryUsage();
    return { resident: rss, heap: heapUsed, limit: limit ?? null };
  }

  pauses(): NowView["pauses"] {
    const now = this.#measured();
    return { p99: Math.max(now.p99, this.#before.p99), longest: Math.max(now.longest, this.#before.longest) };
  }

  #measured(): NowView["pauses"] {
    if (this.#delays.count === 0) return { p99: 0, longest: 0 };
    // The measured value is the time from one sample to the next.
    const pause = (nanoseconds: number): number =>
      Math.max(0, Math.round(nanoseconds / 1e4) / 100 - RESOLUTION);
    return { p99: pause(this.#delays.percentile(99)), longest: pause(this.#delays.max) };
  }
}
