/** Counts the garbage collections in this process that were not requested. */
import { constants, type PerformanceEntry, PerformanceObserver } from "node:perf_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";

export class CollectionCount {
  #count = 0;
  readonly #observer = new PerformanceObserver((list) => this.#note(list.getEntries()));

  constructor() {
    this.#observer.observe({ entryTypes: ["gc"] });
  }

  /** @returns how many there were since it was made */
  async end(): Promise<number> {
    // Node reports a collection in a later turn.
    await nextTurn();
    this.#note(this.#observer.takeRecords());
    this.#observer.disconnect();
    return this.#count;
  }

  #note(entries: readonly PerformanceEntry[]): void {
    this.#count += entries.filter((entry) => (flagsOf(entry) & FORCED) === 0).length;
  }
}

const FORCED = constants.NODE_PERFORMANCE_GC_FLAGS_FORCED;

/** Of an entry for a collection. */
function flagsOf(entry: object): number {
  const detail: unknown = "detail" in entry ? entry.detail : undefined;
  return typeof detail === "object" && detail !== null && "flags" in detail ? Number(detail.flags) : 0;
}
