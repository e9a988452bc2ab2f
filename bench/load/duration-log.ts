import { percentile } from "../numbers/statistics.ts";
import type { Percentiles } from "./load-result.ts";

/** Durations of many events, kept as they are: percentiles of the whole run are exact. */
export class DurationLog {
  #durations: Float64Array;
  #count = 0;

  /** @param expected how many durations there will be, more or less */
  constructor(expected: number) {
    this.#durations = new Float64Array(Math.max(16, Math.ceil(expected)));
  }

  get count(): number {
    return this.#count;
  }

  /** @param milliseconds as the differences of `performance.now()` */
  add(milliseconds: number): void {
    if (this.#count === this.#durations.length) this.#grow();
    this.#durations[this.#count++] = milliseconds;
  }

  /** @returns undefined where nothing was added */
  percentiles(): Percentiles | undefined {
    if (this.#count === 0) return undefined;
    const sorted = this.#durations.slice(0, this.#count).sort();
    const microseconds = (share: number): number => percentile(sorted, share) * 1000;
    return {
      p50: microseconds(0.5),
      p99: microseconds(0.99),
      p999: microseconds(0.999),
      max: microseconds(1),
    };
  }

  #grow(): void {
    const larger = new Float64Array(this.#durations.length * 2);
    larger.set(this.#durations);
    this.#durations = larger;
  }
}
