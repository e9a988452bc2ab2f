/** A sort that gives way to other work. */

/** Comparisons between two pauses. */
const PORTION = 1_000;

/**
 * Merge sort with runs of growing length.
 * @param numbers are overwritten
 */
export async function sortInPortions(
  numbers: Int32Array<ArrayBuffer>,
  compare: (one: number, other: number) => number,
  pause?: () => Promise<void>,
): Promise<Int32Array<ArrayBuffer>> {
  let from = numbers;
  let to = new Int32Array(numbers.length);
  let work = 0;
  for (let width = 1; width < numbers.length; width *= 2) {
    for (let start = 0; start < numbers.length; start += 2 * width) {
      const middle = Math.min(start + width, numbers.length);
      const end = Math.min(start + 2 * width, numbers.length);
      let left = start;
      let right = middle;
      for (let at = start; at < end; at++) {
        if (++work % PORTION === 0) await pause?.();
        const takeLeft =
          left < middle && (right >= end || compare(from[left] as number, from[right] as number) <= 0);
        to[at] = from[takeLeft ? left++ : right++] as number;
      }
    }
    [from, to] = [to, from];
  }
  return from;
}
