/** The text form of times in RRSIG records: `20261122101500` (RFC 4034 section 3.2). */

/** @returns seconds since the epoch, `undefined` for invalid text */
export function readSignatureTime(text: string): number | undefined {
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(text) ?? [];
  if (year === undefined) return undefined;
  return (
    Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second)) /
    1000
  );
}
