/**
 * Finds the candidate that `word` is most likely a misspelling of, ignoring case.
 *
 * Counts insertions, deletions, substitutions and swaps of neighbours (Damerau-Levenshtein, each pair swapped at most
 * once). Up to a third of the longer word may differ, at most three edits; of equally near candidates the first wins.
 *
 * @returns the candidate as spelled in the list, or undefined if none is near.
 */
export function nearestWord(word: string, candidates: Iterable<string>): string | undefined {
  // A word of one letter is as near to `any` as to any other short word.
  if (word.length < 2 || word.length > MAX_WORD_LENGTH) return undefined;
  const wanted = word.toLowerCase();
  let nearest: string | undefined;
  let nearestDistance = MAX_DISTANCE + 1;
  for (const candidate of candidates) {
    const longer = Math.max(word.length, candidate.length);
    const allowed = Math.min(MAX_DISTANCE, Math.floor(longer / 3), nearestDistance - 1);
    const distance = boundedDistance(wanted, candidate.toLowerCase(), allowed);
    if (distance === undefined) continue;
    nearest = candidate;
    nearestDistance = distance;
    if (distance === 0) break;
  }
  return nearest;
}

const MAX_DISTANCE = 3;
const MAX_WORD_LENGTH = 64;

/** The edit distance of two words if it is at most `bound`. */
function boundedDistance(left: string, right: string, bound: number): number | undefined {
  if (Math.abs(left.length - right.length) > bound) return undefined;
  let beforePrevious: number[] = [];
  let previous: number[] = Array.from({ length: right.length + 1 }, (_, column) => column);
  for (let row = 1; row <= left.length; row++) {
    const current: number[] = [row];
    let least = row;
    for (let column = 1; column <= right.length; column++) {
      const same = left[row - 1] === right[column - 1];
      let distance = Math.min(
        cell(previous, column) + 1,
        cell(current, column - 1) + 1,
        cell(previous, column - 1) + (same ? 0 : 1),
      );
      if (
        row > 1 &&
        column > 1 &&
        left[row - 1] === right[column - 2] &&
        left[row - 2] === right[column - 1]
      ) {
        distance = Math.min(distance, cell(beforePrevious, column - 2) + 1);
      }
      current.push(distance);
      if (distance < least) least = distance;
    }
    if (least > bound) return undefined;
    beforePrevious = previous;
    previous = current;
  }
  const distance = cell(previous, right.length);
  return distance <= bound ? distance : undefined;
}

function cell(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
