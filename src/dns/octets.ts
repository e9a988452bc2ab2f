/** Small helpers for octets, shared by several codecs. */
// The global of that name is a getter that Node evaluates at each use.
import { Buffer } from "node:buffer";

/**
 * The octet at an offset known to be in bounds. TypeScript types element access on a typed array as possibly undefined; this is the
 * one place with the assertion.
 */
export function octetAt(bytes: Uint8Array, at: number): number {
  return bytes[at] as number;
}

/** An independent copy. Not `slice()`: a socket delivers a Buffer, whose `slice()` copies nothing. */
export function copyOctets(bytes: Uint8Array, start: number, end: number): Uint8Array {
  if (end - start > SHORT) return new Uint8Array(bytes.subarray(start, end));
  // Making a view just for copying costs more than copying a few octets, and more memory.
  return fillFrom(new Uint8Array(end - start), bytes, start);
}

/**
 * A copy that lives as long as a query. It is allocated from Node's pool, a block of which stays as long as any part of it is in
 * use; a separate allocation would be three objects and a `malloc`.
 */
export function passingCopy(bytes: Uint8Array, start: number, end: number): Uint8Array {
  const copy = Buffer.allocUnsafe(end - start);
  if (copy.length > PASSING) {
    copy.set(bytes.subarray(start, end));
    return copy;
  }
  return fillFrom(copy, bytes, start);
}

function fillFrom(copy: Uint8Array, bytes: Uint8Array, start: number): Uint8Array {
  for (let at = 0; at < copy.length; at++) copy[at] = bytes[start + at] as number;
  return copy;
}

/** V8 keeps arrays up to this length inside of their object. */
const SHORT = 64;
/** Below this, a loop copies faster than a call. */
const PASSING = 256;

/** Maps A-Z to a-z and leaves every other octet as it is (RFC 4343). */
export const FOLD: Uint8Array = Uint8Array.from({ length: 256 }, (_, octet) =>
  octet >= 0x41 && octet <= 0x5a ? octet + 0x20 : octet,
);

export function readU16(bytes: Uint8Array, at: number): number {
  return (octetAt(bytes, at) << 8) | octetAt(bytes, at + 1);
}

export function readU32(bytes: Uint8Array, at: number): number {
  return ((octetAt(bytes, at) << 24) | (octetAt(bytes, at + 1) << 16) | readU16(bytes, at + 2)) >>> 0;
}

export function writeU16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 8;
  bytes[at + 1] = value;
}

export function writeU32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}

export function sameOctets(left: Uint8Array, right: Uint8Array): boolean {
  if (left.length !== right.length) return false;
  for (let at = 0; at < left.length; at++) if (left[at] !== right[at]) return false;
  return true;
}

export function toHex(octets: Uint8Array): string {
  return Buffer.from(octets.buffer, octets.byteOffset, octets.length).toString("hex");
}

/** Each octet as the character of the same number. */
export function toLatin1(octets: Uint8Array): string {
  return Buffer.from(octets.buffer, octets.byteOffset, octets.length).toString("latin1");
}

export function toBase64(octets: Uint8Array): string {
  return Buffer.from(octets.buffer, octets.byteOffset, octets.length).toString("base64");
}

/** `undefined` if the text is not hexadecimal with whole octets. */
export function fromHex(text: string): Uint8Array | undefined {
  if (text.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(text)) return undefined;
  return new Uint8Array(Buffer.from(text, "hex"));
}

/**
 * `undefined` if the text is not base64 (RFC 4648 section 4). Padding may be omitted as a whole. Wrong padding and non-zero spare
 * bits are refused, since no encoder produces them.
 */
export function fromBase64(text: string): Uint8Array | undefined {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return undefined;
  const octets = new Uint8Array(Buffer.from(text, "base64"));
  const padded = toBase64(octets);
  return text === padded || text === padded.replace(/=+$/, "") ? octets : undefined;
}

const BASE32_HEX = "0123456789ABCDEFGHIJKLMNOPQRSTUV";

/** Base32 with the extended hex alphabet and without padding, as in NSEC3 (RFC 5155 section 3.3). */
export function toBase32Hex(octets: Uint8Array): string {
  let text = "";
  let bits = 0;
  let value = 0;
  for (const octet of octets) {
    value = ((value << 8) | octet) & 0xfff;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += BASE32_HEX[(value >>> bits) & 31];
    }
  }
  if (bits > 0) text += BASE32_HEX[(value << (5 - bits)) & 31];
  return text;
}

/** `undefined` if the text is not base32 without padding; letters may have either case. */
export function fromBase32Hex(text: string): Uint8Array | undefined {
  if (!/^[0-9A-Va-v]*$/.test(text)) return undefined;
  const octets: number[] = [];
  let bits = 0;
  let value = 0;
  for (const character of text.toUpperCase()) {
    value = ((value << 5) | BASE32_HEX.indexOf(character)) & 0xfff;
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      octets.push((value >>> bits) & 0xff);
    }
  }
  // Non-zero spare bits mean a damaged text, since no encoder produces them.
  if (bits >= 5 || (value & ((1 << bits) - 1)) !== 0) return undefined;
  return Uint8Array.from(octets);
}
