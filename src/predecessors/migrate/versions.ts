/** The versions of CoreDNS that a Corefile may come from or go to (docs/spec/kube-dns.md#installers). */

export const VERSIONS: readonly string[] = (
  "1.1.3 1.1.4 1.2.0 1.2.1 1.2.2 1.2.3 1.2.4 1.2.5 1.2.6 1.3.0 1.3.1 1.4.0 1.5.0 1.5.1 1.5.2 1.6.0 1.6.1 1.6.2 1.6.3 1.6.4 " +
  "1.6.5 1.6.6 1.6.7 1.6.9 1.7.0 1.7.1 1.8.0 1.8.3 1.8.4 1.8.5 1.8.6 1.8.7 1.9.0 1.9.1 1.9.2 1.9.3 1.9.4 1.10.0 1.10.1 1.11.0 " +
  "1.11.1 1.11.3 1.11.4 1.12.0 1.12.1 1.12.2 1.12.3 1.12.4 1.13.0 1.13.1 1.13.2 1.14.0 1.14.1 1.14.2 1.14.7 1.15.0"
).split(" ");

/** The version whose Corefiles this server runs. */
export const TODAY = "1.15.0";

export const OLDEST = "1.1.3";

/** A word that is not a version of CoreDNS, or two versions in the wrong order. */
export class VersionError extends Error {
  override readonly name = "VersionError";
}

/**
 * Finds a version in the list. A release between two listed ones counts as the earlier one.
 * @throws VersionError
 */
export function readVersion(word: string): string {
  const text = word.replace(/^v/, "");
  if (!/^1\.\d+\.\d+$/.test(text))
    throw new VersionError(`'${word}' is not a version of CoreDNS such as 1.8.0`);
  const known = VERSIONS.findLast((version) => isUpTo(version, text));
  if (known === undefined)
    throw new VersionError(`CoreDNS ${word} is older than ${OLDEST}, the oldest that is known`);
  return known;
}

/** Whether `one` is the same version as `other`, or an earlier one. */
export function isUpTo(one: string, other: string): boolean {
  const [first, second] = [one, other].map((version) => version.split(".").map(Number));
  for (let index = 0; index < 3; index++) {
    const difference = (first?.[index] ?? 0) - (second?.[index] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return true;
}

/** Whether `version` is later than `from`, and not later than `to`. */
export function isBetween(version: string, from: string, to: string): boolean {
  return !isUpTo(version, from) && isUpTo(version, to);
}
