/** Durations in the syntax of Go, which Corefiles and metrics of CoreDNS use (docs/spec/coredns-behaviour.md#arguments). */

/**
 * Reads a signed sequence of decimal numbers, each with a unit: `1h30m`, `1.5h`, `300ms`, `-5s`; `0` needs no unit.
 *
 * The value is truncated to whole nanoseconds, as in Go.
 *
 * @returns milliseconds, with fractions, or undefined if the text is not a duration or exceeds the 292 years of Go's
 * type.
 */
export function parseGoDuration(text: string): number | undefined {
  const negative = text.startsWith("-");
  const unsigned = negative || text.startsWith("+") ? text.slice(1) : text;
  if (unsigned === "0") return 0;
  if (unsigned.length > MAX_TEXT_LENGTH || !WHOLE.test(unsigned)) return undefined;

  let nanoseconds = 0n;
  for (const [, whole = "", fraction = "", unit = ""] of unsigned.matchAll(TERM)) {
    const perUnit = NANOSECONDS_PER_UNIT.get(unit) ?? 0n;
    nanoseconds += BigInt(whole) * perUnit;
    if (fraction !== "") nanoseconds += (BigInt(fraction) * perUnit) / 10n ** BigInt(fraction.length);
  }
  if (nanoseconds > MAX_NANOSECONDS) return undefined;
  // Added in two parts: a duration of months in nanoseconds exceeds the exact range of a float.
  const milliseconds = Number(nanoseconds / 1_000_000n) + Number(nanoseconds % 1_000_000n) / 1e6;
  return negative && milliseconds !== 0 ? -milliseconds : milliseconds;
}

/**
 * Prints a duration as Go does: `1h0m0s`, `1m30s`, `5s`, `300ms`, `1.5µs`, `0s`.
 *
 * @param milliseconds rounded to whole nanoseconds.
 * @throws RangeError unless it is a finite number.
 */
export function formatGoDuration(milliseconds: number): string {
  if (!Number.isFinite(milliseconds))
    throw new RangeError(`a duration is a finite number, not ${milliseconds}`);
  const signed = toNanoseconds(milliseconds);
  if (signed === 0n) return "0s";
  const sign = signed < 0n ? "-" : "";
  const nanoseconds = signed < 0n ? -signed : signed;

  if (nanoseconds < 1_000n) return `${sign}${nanoseconds}ns`;
  if (nanoseconds < 1_000_000n) return `${sign}${decimal(nanoseconds, 3)}µs`;
  if (nanoseconds < SECOND) return `${sign}${decimal(nanoseconds, 6)}ms`;

  const hours = nanoseconds / HOUR;
  const minutes = (nanoseconds % HOUR) / MINUTE;
  const seconds = `${decimal(nanoseconds % MINUTE, 9)}s`;
  if (hours > 0n) return `${sign}${hours}h${minutes}m${seconds}`;
  if (minutes > 0n) return `${sign}${minutes}m${seconds}`;
  return `${sign}${seconds}`;
}

const SECOND = 1_000_000_000n;
const MINUTE = 60n * SECOND;
const HOUR = 60n * MINUTE;

/** Go keeps a duration as a signed count of nanoseconds in 64 bits. */
const MAX_NANOSECONDS = 2n ** 63n - 1n;

/** Longer than any meaningful duration; bounds the work on hostile text. */
const MAX_TEXT_LENGTH = 256;

const NANOSECONDS_PER_UNIT: ReadonlyMap<string, bigint> = new Map([
  ["ns", 1n],
  ["us", 1_000n],
  ["\u00b5s", 1_000n],
  ["\u03bcs", 1_000n],
  ["ms", 1_000_000n],
  ["s", SECOND],
  ["m", MINUTE],
  ["h", HOUR],
]);

const WHOLE = /^(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+$/;
const TERM = /(\d*)\.?(\d*)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/g;

function toNanoseconds(milliseconds: number): bigint {
  // Whole milliseconds first: a million times a large number would exceed the exact range of a float.
  const whole = Math.trunc(milliseconds);
  return BigInt(whole) * 1_000_000n + BigInt(Math.round((milliseconds - whole) * 1e6));
}

/** `value / 10^places` without trailing zeros. */
function decimal(value: bigint, places: number): string {
  const digits = value.toString().padStart(places + 1, "0");
  const fraction = digits.slice(-places).replace(/0+$/, "");
  const whole = digits.slice(0, -places);
  return fraction === "" ? whole : `${whole}.${fraction}`;
}
