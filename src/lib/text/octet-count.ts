/** Amounts of memory as people write them. */

const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  k: 1000,
  ki: 1024,
  m: 1000 ** 2,
  mi: 1024 ** 2,
  g: 1000 ** 3,
  gi: 1024 ** 3,
};

/**
 * Reads `64Mi`, `64MiB`, `64M` or `67108864`: the suffixes of Kubernetes, optionally followed by a B, in any case.
 * @returns bytes, `undefined` for other texts and above 2^53
 */
export function parseOctetCount(text: string): number | undefined {
  const [, digits, suffix] = /^(\d+)([kmg]?i?)b?$/i.exec(text) ?? [];
  const unit = UNITS[suffix?.toLowerCase() ?? "?"];
  if (digits === undefined || unit === undefined) return undefined;
  const octets = Number(digits) * unit;
  return Number.isSafeInteger(octets) ? octets : undefined;
}

/** The shortest form that {@link parseOctetCount} reads, rounded up to a whole number of KiB above 1 KiB. */
export function formatOctetCount(octets: number): string {
  const kibibytes = Math.ceil(octets / 1024);
  if (octets <= 1024) return String(octets);
  if (kibibytes % 1024 ** 2 === 0) return `${kibibytes / 1024 ** 2}Gi`;
  if (kibibytes % 1024 === 0) return `${kibibytes / 1024}Mi`;
  return `${kibibytes}Ki`;
}
