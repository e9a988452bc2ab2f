/**
 * Domain names as octets (RFC 1035 section 3.1). A name keeps its original spelling; comparison, hash and order ignore ASCII case
 * (RFC 4343). The text is made on demand and kept.
 */
import { FOLD, octetAt } from "./octets.ts";

export const MAX_NAME_OCTETS = 255;
export const MAX_LABEL_OCTETS = 63;

/** The longest text of a name: every octet as `\ddd`. Longer texts are refused without reading them. */
const MAX_NAME_TEXT = 4 * MAX_NAME_OCTETS;

/** A fault of a name given as text or octets. */
export class NameError extends Error {
  override readonly name = "NameError";
  /** The offending text, as given. */
  readonly text: string;
  readonly reason: string;

  constructor(text: string, reason: string) {
    super(`not a domain name: "${text.length > MAX_NAME_TEXT ? `${text.slice(0, 80)}…` : text}": ${reason}`);
    this.text = text;
    this.reason = reason;
  }
}

/**
 * Hash of the uncompressed name in `bytes[start, end)`, ignoring case. It runs from the root to the leaf, so the value at the start
 * of each label is the hash of the suffix that begins there.
 */
export function hashName(bytes: Uint8Array, start: number, end: number): number {
  let hash = HASH_BASIS;
  for (let at = end - 1; at >= start; at--) {
    hash = Math.imul(hash ^ octetAt(FOLD, octetAt(bytes, at)), HASH_PRIME);
  }
  return hash;
}

const HASH_BASIS = 0x811c9dc5 | 0;
const HASH_PRIME = 0x01000193;

/** A domain name (RFC 1035 section 3.1): immutable, absolute, compared without case. */
export class Name {
  /** Uncompressed wire form, final root octet included, in the original spelling. Must not be changed. */
  readonly wire: Uint8Array;
  /** The wire form with A-Z folded to a-z; the same array as `wire` if there is nothing to fold. */
  readonly folded: Uint8Array;
  /** Case-insensitive hash, see `hashName`. */
  readonly hash: number;
  #text: string | undefined;
  #labelStarts: Uint8Array | undefined;

  /** `wire` must be a valid uncompressed name that never changes; use the static methods instead. */
  private constructor(wire: Uint8Array) {
    this.wire = wire;
    this.folded = foldWire(wire);
    this.hash = hashName(this.folded, 0, this.folded.length);
  }

  static readonly root: Name = new Name(new Uint8Array(1));

  /**
   * Reads presentation form (RFC 1035 section 5.1: `\.`, `\ddd`). A text without final dot is completed with `origin`, or taken as
   * absolute without an origin.
   * @throws NameError
   */
  static parse(text: string, origin?: Name): Name {
    return Name.#parse(text, origin, 0x7f);
  }

  /**
   * Like {@link parse}, with each character one octet: names in zone text hold any octets (RFC 2181 section 11).
   * @throws NameError
   */
  static parseOctets(text: string, origin?: Name): Name {
    return Name.#parse(text, origin, 0xff);
  }

  static #parse(text: string, origin: Name | undefined, mostCode: number): Name {
    if (text === "@" && origin !== undefined) return origin;
    if (text === ".") return Name.root;
    const { wire, absolute } = parseLabels(text, mostCode);
    if (absolute || origin === undefined) {
      const whole = new Uint8Array(wire.length + 1);
      whole.set(wire);
      return Name.#checked(whole, text);
    }
    const whole = new Uint8Array(wire.length + origin.wire.length);
    whole.set(wire);
    whole.set(origin.wire, wire.length);
    return Name.#checked(whole, text);
  }

  /** Like {@link parse}, but `undefined` if the text is not a name. */
  static tryParse(text: string, origin?: Name): Name | undefined {
    try {
      return Name.parse(text, origin);
    } catch (error) {
      if (error instanceof NameError) return undefined;
      throw error;
    }
  }

  /**
   * Takes the octets of a name that the caller has already checked (labels of 1 to 63 octets, root at the end, 255 octets at most)
   * and copied.
   */
  static fromCheckedWire(wire: Uint8Array): Name {
    return wire.length === 1 ? Name.root : new Name(wire);
  }

  /**
   * Joins labels, given as text without escapes (each character one octet), before `suffix`.
   * @throws NameError
   */
  static fromLabels(labels: readonly string[], suffix: Name = Name.root): Name {
    let length = suffix.wire.length;
    for (const label of labels) length += label.length + 1;
    if (length > MAX_NAME_OCTETS) throw new NameError(labels.join("."), "longer than 255 octets");
    const wire = new Uint8Array(length);
    let at = 0;
    for (const label of labels) {
      if (label.length === 0) throw new NameError(labels.join("."), "empty label");
      if (label.length > MAX_LABEL_OCTETS) throw new NameError(label, "label longer than 63 octets");
      wire[at++] = label.length;
      for (let i = 0; i < label.length; i++) {
        const code = label.charCodeAt(i);
        if (code > 255) throw new NameError(label, "character outside of one octet");
        wire[at++] = code;
      }
    }
    wire.set(suffix.wire, at);
    return Name.fromCheckedWire(wire);
  }

  static #checked(wire: Uint8Array, text: string): Name {
    if (wire.length > MAX_NAME_OCTETS) throw new NameError(text, "longer than 255 octets");
    return Name.fromCheckedWire(wire);
  }

  /** Number of labels without the root: 0 for `.`, 2 for `example.org.`. */
  get labelCount(): number {
    return this.#starts().length;
  }

  get isRoot(): boolean {
    return this.wire.length === 1;
  }

  /** True for a name whose leftmost label is `*` (RFC 4592 section 2.1.1). */
  get isWildcard(): boolean {
    return this.wire[0] === 1 && this.wire[1] === 0x2a;
  }

  /** Whether both are the same name; case does not count. */
  equals(other: Name): boolean {
    if (this === other) return true;
    if (this.hash !== other.hash || this.folded.length !== other.folded.length) return false;
    return equalOctets(this.folded, 0, other.folded);
  }

  /** True if this name is `ancestor` or is below it. */
  isAtOrBelow(ancestor: Name): boolean {
    const offset = this.folded.length - ancestor.folded.length;
    if (offset < 0) return false;
    if (!equalOctets(this.folded, offset, ancestor.folded)) return false;
    return offset === 0 || this.#startsLabelAt(offset);
  }

  /** True if this name is below `ancestor`. */
  isBelow(ancestor: Name): boolean {
    return this.folded.length > ancestor.folded.length && this.isAtOrBelow(ancestor);
  }

  /** The name without its leftmost label; `undefined` for the root. */
  get parent(): Name | undefined {
    return this.isRoot ? undefined : this.suffix(1);
  }

  /** The name without its first `skip` labels; the root if it has fewer. */
  suffix(skip: number): Name {
    if (skip <= 0) return this;
    const start = this.#starts()[skip];
    return start === undefined ? Name.root : new Name(this.wire.subarray(start));
  }

  /**
   * One label's octets as spelled; index 0 is the leftmost.
   * @throws RangeError if the name has no such label
   */
  label(index: number): Uint8Array {
    const start = this.labelStart(index);
    return this.wire.subarray(start + 1, start + 1 + octetAt(this.wire, start));
  }

  /**
   * One label in lower case, one character per octet and without escapes; index 0 is the leftmost.
   * @throws RangeError if the name has no such label
   */
  labelText(index: number): string {
    const start = this.labelStart(index);
    return latin1(this.folded, start + 1, start + 1 + octetAt(this.folded, start));
  }

  /** Whether a label equals this lower-case ASCII text; index 0 is the leftmost. */
  isLabel(index: number, text: string): boolean {
    const { folded } = this;
    const start = this.labelStart(index);
    if (octetAt(folded, start) !== text.length) return false;
    for (let at = 0; at < text.length; at++)
      if (octetAt(folded, start + 1 + at) !== text.charCodeAt(at)) return false;
    return true;
  }

  /**
   * Offset of a label's length octet; index 0 is the leftmost.
   * @throws RangeError if the name has no such label
   */
  labelStart(index: number): number {
    const start = this.#starts()[index];
    if (start === undefined) throw new RangeError(`name has no label ${index}`);
    return start;
  }

  /** The labels to the left of `ancestor`, in lower case, leftmost first. It must be an ancestor. */
  labelsAbove(ancestor: Name): string[] {
    const labels: string[] = [];
    const count = this.labelCount - ancestor.labelCount;
    for (let index = 0; index < count; index++) labels.push(this.labelText(index));
    return labels;
  }

  /**
   * This name with one more label, given without escapes, on its left.
   * @throws NameError
   */
  prepend(label: string): Name {
    return Name.fromLabels([label], this);
  }

  /** This name with the first octets of `labels`, which are labels, on its left; `undefined` if the result is too long. */
  withLabels(labels: Uint8Array, length: number): Name | undefined {
    const { wire } = this;
    if (length + wire.length > MAX_NAME_OCTETS) return undefined;
    const whole = new Uint8Array(length + wire.length);
    for (let at = 0; at < length; at++) whole[at] = octetAt(labels, at);
    for (let at = 0; at < wire.length; at++) whole[length + at] = octetAt(wire, at);
    return Name.fromCheckedWire(whole);
  }

  /**
   * This name with its ancestor `from` replaced by `to`.
   * @throws NameError if the result is too long, RangeError if `from` is not an ancestor
   */
  replaceSuffix(from: Name, to: Name): Name {
    if (!this.isAtOrBelow(from)) throw new RangeError(`${this} is not below ${from}`);
    const kept = this.wire.length - from.wire.length;
    const wire = new Uint8Array(kept + to.wire.length);
    wire.set(this.wire.subarray(0, kept));
    wire.set(to.wire, kept);
    return Name.#checked(wire, `${this}`);
  }

  /** Canonical order of RFC 4034 section 6.1: negative, zero or positive. */
  compare(other: Name): number {
    const mine = this.#starts();
    const theirs = other.#starts();
    const shared = Math.min(mine.length, theirs.length);
    for (let back = 1; back <= shared; back++) {
      const order = compareLabels(
        this.folded,
        mine[mine.length - back] ?? 0,
        other.folded,
        theirs[theirs.length - back] ?? 0,
      );
      if (order !== 0) return order;
    }
    return mine.length - theirs.length;
  }

  /** The name with all letters in lower case. */
  toLowerCase(): Name {
    return this.folded === this.wire ? this : new Name(this.folded);
  }

  /** Presentation form with final dot and escapes. */
  toString(): string {
    this.#text ??= formatWire(this.wire);
    return this.#text;
  }

  /** The presentation form. */
  toJSON(): string {
    return this.toString();
  }

  #startsLabelAt(offset: number): boolean {
    let at = 0;
    while (at < offset) at += octetAt(this.wire, at) + 1;
    return at === offset;
  }

  #starts(): Uint8Array {
    this.#labelStarts ??= labelStarts(this.wire);
    return this.#labelStarts;
  }
}

function labelStarts(wire: Uint8Array): Uint8Array {
  let count = 0;
  for (let at = 0; octetAt(wire, at) !== 0; at += octetAt(wire, at) + 1) count++;
  const starts = new Uint8Array(count);
  let index = 0;
  for (let at = 0; octetAt(wire, at) !== 0; at += octetAt(wire, at) + 1) starts[index++] = at;
  return starts;
}

/** Length octets are below 64 and so never folded: the whole wire form may be folded octet by octet. */
function foldWire(wire: Uint8Array): Uint8Array {
  for (let at = 0; at < wire.length; at++) {
    const octet = octetAt(wire, at);
    if (octet >= 0x41 && octet <= 0x5a) {
      const folded = new Uint8Array(wire.length);
      for (let i = 0; i < wire.length; i++) folded[i] = octetAt(FOLD, octetAt(wire, i));
      return folded;
    }
  }
  return wire;
}

function equalOctets(bytes: Uint8Array, offset: number, suffix: Uint8Array): boolean {
  for (let at = 0; at < suffix.length; at++) {
    if (bytes[offset + at] !== suffix[at]) return false;
  }
  return true;
}

function compareLabels(left: Uint8Array, leftStart: number, right: Uint8Array, rightStart: number): number {
  const leftLength = octetAt(left, leftStart);
  const rightLength = octetAt(right, rightStart);
  const shared = Math.min(leftLength, rightLength);
  for (let at = 1; at <= shared; at++) {
    const order = octetAt(left, leftStart + at) - octetAt(right, rightStart + at);
    if (order !== 0) return order;
  }
  return leftLength - rightLength;
}

function latin1(bytes: Uint8Array, start: number, end: number): string {
  let text = "";
  for (let at = start; at < end; at++) text += String.fromCharCode(octetAt(bytes, at));
  return text;
}

/** Characters with a special meaning in zone text (RFC 1035 section 5.1), which need a backslash. */
const SPECIAL = new Set(Array.from('."();@$\\', (character) => character.charCodeAt(0)));

function formatWire(wire: Uint8Array): string {
  if (wire.length === 1) return ".";
  let text = "";
  for (let at = 0; octetAt(wire, at) !== 0; at += octetAt(wire, at) + 1) {
    const end = at + octetAt(wire, at);
    for (let i = at + 1; i <= end; i++) {
      const octet = octetAt(wire, i);
      if (octet <= 0x20 || octet >= 0x7f) text += `\\${octet.toString().padStart(3, "0")}`;
      else if (SPECIAL.has(octet)) text += `\\${String.fromCharCode(octet)}`;
      else text += String.fromCharCode(octet);
    }
    text += ".";
  }
  return text;
}

/** Octets of the labels without the root octet; `absolute` is whether the text ended in a dot. */
function parseLabels(text: string, mostCode: number): { wire: Uint8Array; absolute: boolean } {
  if (text.length === 0) throw new NameError(text, "empty text");
  if (text.length > MAX_NAME_TEXT) throw new NameError(text, "longer than 255 octets");
  const wire = new Uint8Array(text.length + 1);
  let lengthAt = 0;
  let at = 1;
  let absolute = false;
  for (let index = 0; index < text.length; index++) {
    absolute = false;
    const character = text[index];
    if (character === ".") {
      const length = at - lengthAt - 1;
      if (length === 0) throw new NameError(text, "empty label");
      wire[lengthAt] = length;
      lengthAt = at++;
      absolute = true;
      continue;
    }
    if (character === "\\") {
      const digits = text.slice(index + 1, index + 4);
      if (/^\d{3}$/.test(digits)) {
        const octet = Number(digits);
        if (octet > 255) throw new NameError(text, `escape \\${digits} is above 255`);
        wire[at++] = octet;
        index += 3;
      } else {
        index++;
        if (index >= text.length) throw new NameError(text, "ends in a backslash");
        at = writeCharacter(wire, at, text, index, mostCode);
      }
    } else {
      at = writeCharacter(wire, at, text, index, mostCode);
    }
    if (at - lengthAt - 1 > MAX_LABEL_OCTETS) throw new NameError(text, "label longer than 63 octets");
  }
  if (!absolute) {
    wire[lengthAt] = at - lengthAt - 1;
    lengthAt = at;
  }
  return { wire: wire.subarray(0, lengthAt), absolute };
}

function writeCharacter(wire: Uint8Array, at: number, text: string, index: number, mostCode: number): number {
  const code = text.charCodeAt(index);
  if (code <= mostCode) {
    wire[at] = code;
    return at + 1;
  }
  throw new NameError(
    text,
    `character "${text[index]}" is not ASCII; write its octets as \\ddd or the name in punycode`,
  );
}
