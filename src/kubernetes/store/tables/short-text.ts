/** Texts among octets. */
import { MAX_LABEL_OCTETS } from "../../../dns/name.ts";
import { octetAt } from "../../../dns/octets.ts";

/** Octets of that many are read one by one. */
const SHORT = 16;

/** The text in UTF-8 from `start` to `end`. A few octets are read sooner than a call into the machine's own code returns. */
export function readText(octets: Buffer, start: number, end: number): string {
  if (end - start > SHORT) return octets.toString("utf8", start, end);
  let text = "";
  for (let at = start; at < end; at++) {
    const octet = octets[at] ?? 0;
    if (octet >= 0x80) return octets.toString("utf8", start, end);
    text += String.fromCharCode(octet);
  }
  return text;
}

/** Texts that were read last, by where they stand: to compare one takes less than to make it. */
export class RecentTexts {
  readonly #texts: string[] = new Array<string>(KEPT).fill("");

  /** The text in UTF-8 from `start` to `end`. */
  read(slot: number, octets: Buffer, start: number, end: number): string {
    const place = slot & (KEPT - 1);
    const known = this.#texts[place] ?? "";
    if (isText(octets, start, end, known)) return known;
    const text = readText(octets, start, end);
    this.#texts[place] = text;
    return text;
  }
}

const KEPT = 1_024;

/** Whether the octets from `start` to `end` are a label, whose length octet stands at `at`. No object of a cluster has a name that is not ASCII. */
export function isLabel(
  octets: Uint8Array,
  start: number,
  end: number,
  labels: Uint8Array,
  at: number,
): boolean {
  if (octetAt(labels, at) !== end - start) return false;
  const distance = at + 1 - start;
  for (let next = start; next < end; next++)
    if (octetAt(octets, next) !== octetAt(labels, next + distance)) return false;
  return true;
}

/** Writes octets as a label of ASCII. @returns where it ends, -1 where they are not labels or have no room */
export function writeLabel(
  octets: Uint8Array,
  start: number,
  length: number,
  to: Uint8Array,
  at: number,
): number {
  if (length === 0 || length > MAX_LABEL_OCTETS || at + length >= to.length) return -1;
  to[at] = length;
  for (let next = 0; next < length; next++) {
    const octet = octetAt(octets, start + next);
    if (octet >= 0x80) return -1;
    to[at + 1 + next] = octet;
  }
  return at + 1 + length;
}

/** The same with a text, as the first label. A text with two labels is not one. */
export function writeTextLabel(text: string, to: Uint8Array): number {
  const { length } = text;
  if (length === 0 || length > MAX_LABEL_OCTETS) return -1;
  to[0] = length;
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at);
    if (code >= 0x80 || code === DOT) return -1;
    to[at + 1] = code;
  }
  return length + 1;
}

const DOT = 0x2e;

/** Whether the text in UTF-8 from `start` to `end` is this one. */
export function isText(octets: Buffer, start: number, end: number, text: string): boolean {
  if (end - start < text.length) return false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code >= 0x80) return octets.toString("utf8", start, end) === text;
    if (octets[start + at] !== code) return false;
  }
  return end - start === text.length;
}
