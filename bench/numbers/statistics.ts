/** The few statistics that a benchmark of several rounds needs. */

/** The values of several rounds. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** @returns undefined where nothing was measured */
export function spreadOf(values: readonly number[]): Spread | undefined {
  if (values.length === 0) return undefined;
  const sorted = values.toSorted((one, other) => one - other);
  return { median: medianOfSorted(sorted), min: sorted.at(0) ?? 0, max: sorted.at(-1) ?? 0 };
}

/** @throws RangeError for no values */
export function median(values: readonly number[]): number {
  const spread = spreadOf(values);
  if (spread === undefined) throw new RangeError("no values have no median");
  return spread.median;
}

/**
 * The smallest value that at least this share of all values do not exceed ("nearest rank").
 * @param sorted in ascending order
 * @param share 0.99 for p99
 * @throws RangeError for no values
 */
export function percentile(sorted: Float64Array, share: number): number {
  const value = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  if (value === undefined) throw new RangeError("no values have no percentile");
  return value;
}

function medianOfSorted(sorted: readonly number[]): number {
  const upper = sorted[sorted.length >>> 1] ?? 0;
  const lower = sorted[(sorted.length - 1) >>> 1] ?? 0;
  return (lower + upper) / 2;
}
