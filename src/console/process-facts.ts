/** Memory and pauses of this process. */
import { readFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { NowView } from "./api-types.ts";

/** Milliseconds between two looks at the event loop. */
const RESOLUTION = 20;

export class ProcessFacts {
  readonly #delays = monitorEventLoopDelay({ resolution: RESOLUTION });
  /** Nanoseconds, of the minute before. */
  #before: NowView["pauses"] = { p99: 0, longest: 0 };

  start(): void {
    this.#delays.enable();
  }

  stop(): void {
    this.#delays.disable();
  }

  /** Begins another minute. */
  advance(): void {
    this.#before = this.#measured();
    this.#delays.reset();
  }

  memory(): NowView["memory"] {
    const { rss, heapUsed } = process.memoryUsage();
    return { resident: rss, heap: heapUsed, limit: memoryLimit() };
  }

  pauses(): NowView["pauses"] {
    const now = this.#measured();
    return { p99: Math.max(now.p99, this.#before.p99), longest: Math.max(now.longest, this.#before.longest) };
  }

  #measured(): NowView["pauses"] {
    if (this.#delays.count === 0) return { p99: 0, longest: 0 };
    // What is measured is the time from one look to the next.
    const pause = (nanoseconds: number): number =>
      Math.max(0, Math.round(nanoseconds / 1e4) / 100 - RESOLUTION);
    return { p99: pause(this.#delays.percentile(99)), longest: pause(this.#delays.max) };
  }
}

/** Octets that the cgroup may take; `null` where that is not known or not bounded. */
function memoryLimit(): number | null {
  for (const file of ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]) {
    try {
      const limit = Number(readFileSync(file, "latin1"));
      return limit > 0 && limit < 2 ** 50 ? limit : null;
    } catch {
      // Another version of cgroups, or another system.
    }
  }
  return null;
}
