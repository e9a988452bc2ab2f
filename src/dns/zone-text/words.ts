/** Reads words of zone text from octets, without making strings of the common ones. */
import { MAX_LABEL_OCTETS, MAX_NAME_OCTETS } from "../name.ts";
import { parseClass, RecordClass } from "../numbers.ts";
import { FOLD, octetAt } from "../octets.ts";
import { parseRecordType, RecordType } from "../type-names.ts";

const DOT = 0x2e;
const BACKSLASH = 0x5c;

/** Result of {@link writeName} for an invalid name. */
export const NameProblem = {
  EMPTY_LABEL: -1,
  LONG_LABEL: -2,
  LONG_NAME: -3,
  BAD_ESCAPE: -4,
  EMPTY: -5,
} as const;

const NAME_PROBLEMS: Readonly<Record<number, string>> = {
  [NameProblem.EMPTY_LABEL]: "empty label",
  [NameProblem.LONG_LABEL]: "label longer than 63 octets",
  [NameProblem.LONG_NAME]: "longer than 255 octets",
  [NameProblem.BAD_ESCAPE]: "bad escape",
  [NameProblem.EMPTY]: "empty text",
};

export function nameProblem(code: number): string {
  return NAME_PROBLEMS[code] ?? "unreadable";
}

/** Room that {@link writeName} may need after `at`. */
export const NAME_ROOM = 2 * MAX_NAME_OCTETS;

/**
 * Reads the name in `bytes[start, end)` into `target` at `at`, completed with `origin` if it has no final dot.
 * @returns the end of the name in `target`, or a {@link NameProblem}
 */
export function writeName(
  bytes: Uint8Array,
  start: number,
  end: number,
  target: Uint8Array,
  at: number,
  origin: Uint8Array,
): number {
  const first = octetAt(bytes, start);
  if (end === start) return NameProblem.EMPTY;
  if (end - start === 1) {
    if (first === 0x40) return append(origin, target, at, at);
    if (first === DOT) {
      target[at] = 0;
      return at + 1;
    }
  }
  let lengthAt = at;
  let to = at + 1;
  const last = at + MAX_NAME_OCTETS;
  for (let from = start; from < end; from++) {
    let octet = octetAt(bytes, from);
    if (octet === DOT) {
      const length = to - lengthAt - 1;
      if (length === 0) return NameProblem.EMPTY_LABEL;
      if (length > MAX_LABEL_OCTETS) return NameProblem.LONG_LABEL;
      target[lengthAt] = length;
      lengthAt = to++;
      continue;
    }
    if (octet === BACKSLASH) {
      octet = escapedOctet(bytes, from + 1, end);
      if (octet < 0) return NameProblem.BAD_ESCAPE;
      from += escapeLength(bytes, from + 1, end);
    }
    if (to >= last) return to - lengthAt > MAX_LABEL_OCTETS ? NameProblem.LONG_LABEL : NameProblem.LONG_NAME;
    target[to++] = octet;
  }
  const length = to - lengthAt - 1;
  if (length === 0) {
    // The text ended in a dot: the length octet of the next label becomes the root.
    target[lengthAt] = 0;
    return to;
  }
  if (length > MAX_LABEL_OCTETS) return NameProblem.LONG_LABEL;
  target[lengthAt] = length;
  return append(origin, target, at, to);
}

function append(origin: Uint8Array, target: Uint8Array, at: number, to: number): number {
  if (to - at + origin.length > MAX_NAME_OCTETS) return NameProblem.LONG_NAME;
  for (let index = 0; index < origin.length; index++) target[to + index] = octetAt(origin, index);
  return to + origin.length;
}

/**
 * The octet escaped by the backslash before `at`: three digits, or a single character, which may be a digit not followed by two
 * others, as in CoreDNS and NSD. -1 for three digits above 255, and at the end of the text.
 */
export function escapedOctet(bytes: Uint8Array, at: number, end: number): number {
  if (at >= end) return -1;
  const one = octetAt(bytes, at);
  if (escapeLength(bytes, at, end) === 1) return one;
  const value = (one - 0x30) * 100 + (octetAt(bytes, at + 1) - 0x30) * 10 + (octetAt(bytes, at + 2) - 0x30);
  return value > 255 ? -1 : value;
}

/** Octets after the backslash that belong to it: 3 or 1. */
export function escapeLength(bytes: Uint8Array, at: number, end: number): number {
  return at + 2 < end &&
    isDigit(octetAt(bytes, at)) &&
    isDigit(octetAt(bytes, at + 1)) &&
    isDigit(octetAt(bytes, at + 2))
    ? 3
    : 1;
}

export function isDigit(octet: number): boolean {
  return octet >= 0x30 && octet <= 0x39;
}

/** A whole number up to `most`, -1 for any other text. */
export function readNumber(bytes: Uint8Array, start: number, end: number, most: number): number {
  if (start >= end || end - start > 10) return -1;
  let value = 0;
  for (let at = start; at < end; at++) {
    const octet = octetAt(bytes, at);
    if (!isDigit(octet)) return -1;
    value = value * 10 + (octet - 0x30);
  }
  return value > most ? -1 : value;
}

const UNIT_SECONDS: Readonly<Record<number, number>> = {
  119: 604800,
  100: 86400,
  104: 3600,
  109: 60,
  115: 1,
};

/** A TTL in seconds (`3600`, `1h30m`), -1 for any other text. */
export function readTtl(bytes: Uint8Array, start: number, end: number): number {
  let total = 0;
  let value = -1;
  for (let at = start; at < end; at++) {
    const octet = octetAt(bytes, at);
    if (isDigit(octet)) {
      value = Math.max(value, 0) * 10 + (octet - 0x30);
      if (value > 0xffffffff) return -1;
      continue;
    }
    const unit = UNIT_SECONDS[octetAt(FOLD, octet)];
    if (unit === undefined || value < 0) return -1;
    total += value * unit;
    value = -1;
  }
  if (value >= 0) total += value;
  else if (start === end) return -1;
  return total <= 0xffffffff ? total : -1;
}

/** {@link readWord} returns a class as its number with this bit, and a type as the number alone. */
export const CLASS_BIT = 0x10000;
export const UNKNOWN_WORD = -1;

interface KnownWord {
  readonly octets: Uint8Array;
  readonly value: number;
}

const KNOWN_WORDS: ReadonlyMap<number, KnownWord> = knownWords();

function knownWords(): Map<number, KnownWord> {
  const known = new Map<number, KnownWord>();
  const add = (word: string, value: number): void => {
    const octets = Uint8Array.from(Buffer.from(word.toLowerCase(), "latin1"));
    known.set(hashWord(octets, 0, octets.length), { octets, value });
  };
  for (const [word, type] of Object.entries(RecordType)) add(word, type);
  for (const [word, number] of Object.entries(RecordClass)) if (word !== "ANY") add(word, number | CLASS_BIT);
  return known;
}

function hashWord(bytes: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  for (let at = start; at < end; at++) hash = (Math.imul(hash, 31) + octetAt(FOLD, octetAt(bytes, at))) | 0;
  return hash;
}

/** The type or class of a word in any case, `TYPE65280` and `CLASS32` included; UNKNOWN_WORD for others. */
export function readWord(bytes: Uint8Array, start: number, end: number): number {
  const known = KNOWN_WORDS.get(hashWord(bytes, start, end));
  if (known !== undefined && sameWord(bytes, start, end, known.octets)) return known.value;
  if (end - start > 12) return UNKNOWN_WORD;
  const text = latin1(bytes, start, end);
  const type = parseRecordType(text);
  if (type !== undefined) return type;
  const recordClass = parseClass(text);
  return recordClass === undefined ? UNKNOWN_WORD : recordClass | CLASS_BIT;
}

function sameWord(bytes: Uint8Array, start: number, end: number, octets: Uint8Array): boolean {
  if (end - start !== octets.length) return false;
  for (let at = 0; at < octets.length; at++) {
    if (octetAt(FOLD, octetAt(bytes, start + at)) !== octets[at]) return false;
  }
  return true;
}

export function latin1(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("latin1");
}

export function utf8(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("utf8");
}
