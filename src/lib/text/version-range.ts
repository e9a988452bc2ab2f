/** Ranges of versions such as `>=0.2.0 <1`, for plugins that need a certain Portolan. */

/** An invalid range; the message is one line. */
export class VersionRangeError extends Error {
  override readonly name = "VersionRangeError";
  readonly range: string;

  constructor(range: string) {
    super(`'${range}' is not a range of versions such as ">=0.2.0" or ">=0.2.0 <1"`);
    this.range = range;
  }
}

/**
 * Whether `version` is in `range`: comparisons separated by spaces, all of which must hold, each `>=`, `>`, `<=`, `<`
 * or `=` and one to three numbers. Missing numbers are 0. Only the three numbers of `version` count, so 0.2.0-beta is
 * 0.2.0.
 * @throws VersionRangeError
 */
export function isInVersionRange(version: string, range: string): boolean {
  const comparisons = range.trim().split(/\s+/);
  return comparisons.every((comparison) => {
    const match = /^(>=|>|<=|<|=)(\d{1,9}(?:\.\d{1,9}){0,2})$/.exec(comparison);
    const [, operator, bound] = match ?? [];
    if (operator === undefined || bound === undefined) throw new VersionRangeError(range);
    return holds(operator, compareVersions(version, bound));
  });
}

function holds(operator: string, order: number): boolean {
  switch (operator) {
    case ">=":
      return order >= 0;
    case ">":
      return order > 0;
    case "<=":
      return order <= 0;
    case "<":
      return order < 0;
    default:
      return order === 0;
  }
}

function compareVersions(one: string, other: string): number {
  const [left, right] = [numbersOf(one), numbersOf(other)];
  for (let index = 0; index < 3; index++) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function numbersOf(version: string): number[] {
  return (version.split("-", 1)[0] ?? "").split(".").map(Number);
}
