/**
 * Names in the form that the rules of `rewrite` match: text in lower case, with a dot after each label. It is stored
 * as numbers, one per octet, so that a dot within a label differs from the end of a label, and comparisons make no
 * string.
 */
import { Name, NameError } from "../../dns/index.ts";
import { FOLD } from "../../dns/octets.ts";

/** The dot after a label. */
const DOT = 0x100;

const MAX_NAME_OCTETS = 255;
const MAX_LABEL_OCTETS = 63;

/** A part of such a text in a rule. */
export type TextPart = readonly number[];

/**
 * Parses a word of a rule: escapes as in zone text, characters outside ASCII as their octets in UTF-8. @param
 * qualified whether to append a missing final dot
 */
export function parseTextPart(word: string, qualified: boolean): TextPart {
  const octets = Buffer.from(word);
  const part: number[] = [];
  for (let at = 0; at < octets.length; at++) {
    const octet = octets[at] ?? 0;
    if (octet === 0x2e) {
      part.push(DOT);
    } else if (octet === 0x5c && at + 1 < octets.length) {
      const digits = octets.toString("latin1", at + 1, at + 4);
      const isNumber = /^\d{3}$/.test(digits) && Number(digits) <= 255;
      part.push(fold(isNumber ? Number(digits) : (octets[at + 1] ?? 0)));
      at += isNumber ? 3 : 1;
    } else {
      part.push(fold(octet));
    }
  }
  if (qualified && part.at(-1) !== DOT) part.push(DOT);
  return part;
}

/** Whether the part begins with a dot, so that it matches only after a whole label. */
export function beginsWithDot(part: TextPart): boolean {
  return part[0] === DOT;
}

/** The name that a text stands for: the root for a single dot, `undefined` for an invalid name. */
export function nameOfText(text: TextPart): Name | undefined {
  const { length } = text;
  if (length === 1 && text[0] === DOT) return Name.root;
  if (length === 0 || length > MAX_NAME_OCTETS - 1 || text[length - 1] !== DOT) return undefined;
  const wire = new Uint8Array(length + 1);
  let lengthAt = 0;
  for (let at = 0; at < length; at++) {
    const code = text[at] ?? 0;
    if (code !== DOT) {
      wire[at + 1] = code;
      continue;
    }
    const label = at - lengthAt;
    if (label === 0 || label > MAX_LABEL_OCTETS) return undefined;
    wire[lengthAt] = label;
    lengthAt = at + 1;
  }
  return Name.fromCheckedWire(wire);
}

const NO_OCTETS = new Uint8Array(0);

/** A name to compare with parts of text. One object is reused for all names. */
export class NameText {
  readonly #codes = new Uint16Array(MAX_NAME_OCTETS);
  #length = 0;
  #bytes: Uint8Array = NO_OCTETS;
  #start = 0;
  #end = 0;

  /** @param bytes holds the uncompressed name from `start` on, the root octet included, up to `end` */
  read(bytes: Uint8Array, start: number, end: number): void {
    this.#bytes = bytes;
    this.#start = start;
    this.#end = end;
    this.#length = 0;
  }

  /** Drops the reference to the bytes. */
  clear(): void {
    this.#bytes = NO_OCTETS;
  }

  #fill(): void {
    if (this.#length > 0) return;
    const bytes = this.#bytes;
    const start = this.#start;
    const end = this.#end;
    let label = start;
    this.#length = Math.max(1, end - start - 1);
    for (let at = start + 1; at < end; at++) {
      const isBoundary = at === label + (bytes[label] ?? 0) + 1;
      if (isBoundary) label = at;
      this.#codes[at - start - 1] = isBoundary ? DOT : fold(bytes[at] ?? 0);
    }
    if (end - start === 1) this.#codes[0] = DOT;
  }

  startsWith(part: TextPart): boolean {
    this.#fill();
    return part.length <= this.#length && this.#standsAt(part, 0);
  }

  endsWith(part: TextPart): boolean {
    this.#fill();
    return part.length <= this.#length && this.#standsAt(part, this.#length - part.length);
  }

  includes(part: TextPart): boolean {
    this.#fill();
    return this.#indexOf(part, 0) >= 0;
  }

  withPrefix(from: TextPart, to: TextPart): Name | undefined {
    this.#fill();
    return nameOfText([...to, ...this.#slice(from.length, this.#length)]);
  }

  withSuffix(from: TextPart, to: TextPart): Name | undefined {
    this.#fill();
    return nameOfText([...this.#slice(0, this.#length - from.length), ...to]);
  }

  withAllReplaced(from: TextPart, to: TextPart): Name | undefined {
    this.#fill();
    const text: number[] = [];
    let copied = 0;
    for (let found = this.#indexOf(from, 0); found >= 0; found = this.#indexOf(from, copied)) {
      text.push(...this.#slice(copied, found), ...to);
      copied = found + from.length;
    }
    text.push(...this.#slice(copied, this.#length));
    return nameOfText(text);
  }

  #slice(from: number, to: number): Uint16Array {
    return this.#codes.subarray(from, to);
  }

  #indexOf(part: TextPart, from: number): number {
    for (let at = from; at + part.length <= this.#length; at++) if (this.#standsAt(part, at)) return at;
    return -1;
  }

  #standsAt(part: TextPart, at: number): boolean {
    for (let index = 0; index < part.length; index++)
      if (this.#codes[at + index] !== part[index]) return false;
    return true;
  }
}

function fold(octet: number): number {
  return FOLD[octet] ?? octet;
}

/** Completes text that a rule made with a dot and parses it as a name; `undefined` if it is invalid. */
export function nameOfResult(text: string): Name | undefined {
  try {
    return Name.parse(text.toLowerCase());
  } catch (error) {
    if (error instanceof NameError) return undefined;
    throw error;
  }
}
