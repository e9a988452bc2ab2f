/**
 * A histogram of durations in 48 classes, each half as large again as the previous one, from a microsecond to a
 * minute.
 */

export const LATENCY_CLASSES = 48;

/** @param milliseconds of one query */
export function latencyClass(milliseconds: number): number {
  return Math.max(0, Math.min(LATENCY_CLASSES - 1, Math.floor(2 * Math.log2(1 + milliseconds * 1000))));
}

/** The middle of a class, in milliseconds. */
function middleOf(latency: number): number {
  return (2 ** ((latency + 0.5) / 2) - 1) / 1000;
}

/**
 * The duration that a share of the queries stays below.
 * @param counts the number of queries in each class
 * @returns milliseconds, `null` without queries
 */
export function percentile(counts: ArrayLike<number>, share: number): number | null {
  let total = 0;
  for (let at = 0; at < LATENCY_CLASSES; at++) total += counts[at] ?? 0;
  if (total === 0) return null;
  let sum = 0;
  for (let at = 0; at < LATENCY_CLASSES; at++) {
    sum += counts[at] ?? 0;
    if (sum >= share * total) return Math.round(middleOf(at) * 1e4) / 1e4;
  }
  return middleOf(LATENCY_CLASSES - 1);
}
