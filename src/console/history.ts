/** The counts of the last hour, in memory of fixed size. */
import type { FinishedQuery } from "../plugin/stream/query-reader.ts";
import type { HistoryPoint } from "./api-types.ts";
import { LATENCY_CLASSES, latencyClass, percentile } from "./latency.ts";

/** Seconds of an interval, and the number of intervals. */
export const STEP = 5;
const STEPS = 720;
const STEPS_OF_MINUTE = 60 / STEP;
/** A difference of the clocks, in milliseconds, above which one of them was set. Less is drift. */
const CLOCK_SET = 1_000;

/** Places in an interval; rcodes 0 to 15, then the one for no reply, then classes of durations. */
const HITS = 0;
const RCODES = 1;
const NO_REPLY = RCODES + 16;
const LATENCY = NO_REPLY + 1;
const NUMBERS = LATENCY + LATENCY_CLASSES;

/** Types with a count of their own; the others share one. */
export const COUNTED_TYPES = [1, 28, 12, 33, 16, 15, 65, 5, 6, 2] as const;

export class History {
  readonly #numbers = new Uint32Array(STEPS * NUMBERS);
  /** By type, of the last minute. */
  readonly #types = new Uint32Array(STEPS_OF_MINUTE * (COUNTED_TYPES.length + 1));
  /** Number of the newest interval, counted from the epoch as it was at first; -1 before the first. */
  #newest = -1;
  #oldest = -1;
  /** Milliseconds between the two clocks: at first, and since the wall clock was last set. */
  #firstEpoch = 0;
  #epoch = 0;

  /**
   * Moves on to an interval. The wall clock may be set, by days, so intervals follow the monotonic one.
   * @param time milliseconds of the Unix epoch
   * @param now milliseconds that never go back
   */
  advance(time: number, now: number): void {
    const epoch = time - now;
    if (this.#newest < 0) this.#firstEpoch = epoch;
    if (this.#newest < 0 || Math.abs(epoch - this.#epoch) >= CLOCK_SET) this.#epoch = epoch;
    const step = Math.floor((now + this.#firstEpoch) / 1000 / STEP);
    if (this.#newest < 0) this.#oldest = step;
    if (step <= this.#newest) return;
    const first = this.#newest < 0 ? step : Math.max(this.#newest + 1, step - STEPS + 1);
    for (let each = first; each <= step; each++) {
      const at = (each % STEPS) * NUMBERS;
      this.#numbers.fill(0, at, at + NUMBERS);
      const row = (each % STEPS_OF_MINUTE) * (COUNTED_TYPES.length + 1);
      this.#types.fill(0, row, row + COUNTED_TYPES.length + 1);
    }
    this.#newest = step;
    this.#oldest = Math.max(this.#oldest, step - STEPS + 1);
  }

  /** Adds to the newest interval. */
  count({ rcode, duration, plugin, weight, type }: FinishedQuery): void {
    if (this.#newest < 0) return;
    const at = (this.#newest % STEPS) * NUMBERS;
    this.#add(at + (rcode === undefined ? NO_REPLY : RCODES + Math.min(rcode, 15)), weight);
    this.#add(at + LATENCY + latencyClass(duration), weight);
    if (plugin === "cache") this.#add(at + HITS, weight);
    const counted = COUNTED_TYPES.indexOf(type as (typeof COUNTED_TYPES)[number]);
    const row = (this.#newest % STEPS_OF_MINUTE) * (COUNTED_TYPES.length + 1);
    const place = row + (counted < 0 ? COUNTED_TYPES.length : counted);
    this.#types[place] = (this.#types[place] ?? 0) + weight;
  }

  /**
   * Oldest first, including the current interval.
   * @param since milliseconds of the Unix epoch, of a point that the client has: earlier points are left out. All
   * points if that one does not exist
   */
  points(since = 0): HistoryPoint[] {
    const points: HistoryPoint[] = [];
    if (this.#newest < 0) return points;
    const shift = Math.round(this.#epoch - this.#firstEpoch);
    const known = Math.floor((since - shift) / 1000 / STEP);
    const first = known > this.#newest ? this.#oldest : Math.max(known, this.#oldest);
    for (let step = first; step <= this.#newest; step++) {
      const numbers = this.#of(step);
      const queries = sum(numbers, RCODES, LATENCY);
      const good = numbers[RCODES] ?? 0;
      const nxdomain = numbers[RCODES + 3] ?? 0;
      const unanswered = numbers[NO_REPLY] ?? 0;
      const latencies = numbers.subarray(LATENCY);
      points.push({
        time: step * STEP * 1000 + shift,
        queries,
        nxdomain,
        unanswered,
        errors: queries - good - nxdomain - unanswered,
        hits: numbers[HITS] ?? 0,
        p50: percentile(latencies, 0.5),
        p99: percentile(latencies, 0.99),
      });
    }
    return points;
  }

  /** The newest two: the last complete one, and the current one. */
  newestPoints(): HistoryPoint[] {
    return this.points((this.#newest - 1) * STEP * 1000 + Math.round(this.#epoch - this.#firstEpoch));
  }

  /** The last minute. */
  minute(): {
    readonly rcodes: Uint32Array;
    readonly unanswered: number;
    readonly hits: number;
    readonly latencies: Uint32Array;
    readonly types: Uint32Array;
  } {
    const all = new Uint32Array(NUMBERS);
    const types = new Uint32Array(COUNTED_TYPES.length + 1);
    const first = Math.max(this.#oldest, this.#newest - STEPS_OF_MINUTE + 1);
    for (let step = first; step <= this.#newest && this.#newest >= 0; step++) {
      const numbers = this.#of(step);
      for (let at = 0; at < NUMBERS; at++) all[at] = (all[at] ?? 0) + (numbers[at] ?? 0);
      const row = (step % STEPS_OF_MINUTE) * types.length;
      for (let at = 0; at < types.length; at++) types[at] = (types[at] ?? 0) + (this.#types[row + at] ?? 0);
    }
    return {
      rcodes: all.slice(RCODES, NO_REPLY),
      unanswered: all[NO_REPLY] ?? 0,
      hits: all[HITS] ?? 0,
      latencies: all.slice(LATENCY),
      types,
    };
  }

  #of(step: number): Uint32Array {
    const at = (step % STEPS) * NUMBERS;
    return this.#numbers.subarray(at, at + NUMBERS);
  }

  #add(place: number, weight: number): void {
    this.#numbers[place] = (this.#numbers[place] ?? 0) + weight;
  }
}

function sum(numbers: Uint32Array, from: number, to: number): number {
  let total = 0;
  for (let at = from; at < to; at++) total += numbers[at] ?? 0;
  return total;
}
