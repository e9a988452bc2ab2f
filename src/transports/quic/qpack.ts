/**
 * Header fields of HTTP/3 (QPACK, RFC 9204) with only the static table: no dynamic table in either direction. The decoder only
 * keeps the fields of a request line.
 */
import { decodeHuffman } from "../huffman.ts";
import { pushInteger } from "../prefixed-integer.ts";

/** A violation of the protocol: the connection ends. */
export class QpackError extends Error {
  override readonly name = "QpackError";
}

/** The used entries of the static table (RFC 9204 appendix A), by number. */
const STATIC: ReadonlyMap<number, readonly [name: string, value: string]> = new Map([
  [0, [":authority", ""]],
  [1, [":path", "/"]],
  [4, ["content-length", "0"]],
  [15, [":method", "CONNECT"]],
  [16, [":method", "DELETE"]],
  [17, [":method", "GET"]],
  [18, [":method", "HEAD"]],
  [19, [":method", "OPTIONS"]],
  [20, [":method", "POST"]],
  [21, [":method", "PUT"]],
  [22, [":scheme", "http"]],
  [23, [":scheme", "https"]],
  [25, [":status", "200"]],
  [27, [":status", "404"]],
  [36, ["cache-control", "max-age=0"]],
  [44, ["content-type", "application/dns-message"]],
  [61, ["x-content-type-options", "nosniff"]],
  [67, [":status", "400"]],
  [71, [":status", "500"]],
]);
const STATIC_ENTRIES = 99;
/** Stands for the name of any other entry. */
const OTHER = "";

export interface HeaderField {
  readonly name: string;
  readonly value: string;
}

/**
 * @param block of one HEADERS frame
 * @throws QpackError
 */
export function decodeFields(block: Uint8Array): HeaderField[] {
  const reader = new FieldReader(block);
  // Required insert count and base: nothing was ever inserted.
  if (reader.integer(8) !== 0) throw new QpackError("refers to a dynamic table");
  reader.integer(7);
  const fields: HeaderField[] = [];
  while (!reader.isAtEnd) {
    const first = reader.peek;
    if ((first & 0x80) !== 0) {
      if ((first & 0x40) === 0) throw new QpackError("refers to a dynamic table");
      const [name, value] = staticEntry(reader.integer(6));
      fields.push({ name, value });
    } else if ((first & 0x40) !== 0) {
      if ((first & 0x10) === 0) throw new QpackError("refers to a dynamic table");
      const [name] = staticEntry(reader.integer(4));
      fields.push({ name, value: reader.text(7) });
    } else if ((first & 0x20) !== 0) {
      const name = reader.text(3);
      fields.push({ name, value: reader.text(7) });
    } else throw new QpackError("refers to a dynamic table");
  }
  return fields;
}

function staticEntry(index: number): readonly [name: string, value: string] {
  if (index >= STATIC_ENTRIES) throw new QpackError("no such entry in the static table");
  return STATIC.get(index) ?? [OTHER, OTHER];
}

class FieldReader {
  readonly #octets: Uint8Array;
  #at = 0;

  constructor(octets: Uint8Array) {
    this.#octets = octets;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#octets.length;
  }

  get peek(): number {
    return this.#octets[this.#at] as number;
  }

  /** @param prefix bits of the first octet that belong to it (RFC 7541 section 5.1) */
  integer(prefix: number): number {
    const most = 2 ** prefix - 1;
    let value = this.#octet() & most;
    if (value < most) return value;
    // No valid length or index needs more than 28 bits.
    for (let shift = 0; shift <= 21; shift += 7) {
      const octet = this.#octet();
      value += (octet & 0x7f) * 2 ** shift;
      if ((octet & 0x80) === 0) return value;
    }
    throw new QpackError("integer too large");
  }

  /** @param prefix bits of the first octet that its length has; the bit before them is the Huffman flag */
  text(prefix: number): string {
    const isHuffman = ((this.#octets[this.#at] ?? 0) & (1 << prefix)) !== 0;
    const length = this.integer(prefix);
    const octets = this.#octets.subarray(this.#at, this.#at + length);
    if (octets.length < length) throw new QpackError("ends within a field");
    this.#at += length;
    const text = isHuffman ? decodeHuffman(octets) : Buffer.from(octets).toString("latin1");
    if (text === undefined) throw new QpackError("not the Huffman code of HTTP");
    return text;
  }

  #octet(): number {
    const octet = this.#octets[this.#at];
    if (octet === undefined) throw new QpackError("ends within a field");
    this.#at++;
    return octet;
  }
}

/** @param fields lower-case names, pseudo-headers first */
export function encodeFields(fields: readonly HeaderField[]): Uint8Array {
  const out: number[] = [0, 0];
  for (const { name, value } of fields) {
    let named: number | undefined;
    let whole: number | undefined;
    for (const [index, entry] of STATIC) {
      if (entry[0] !== name) continue;
      named ??= index;
      if (entry[1] === value) whole = index;
    }
    if (whole !== undefined) {
      pushInteger(out, 0xc0, 6, whole);
      continue;
    }
    if (named !== undefined) pushInteger(out, 0x50, 4, named);
    else {
      pushInteger(out, 0x20, 3, name.length);
      out.push(...Buffer.from(name, "latin1"));
    }
    pushInteger(out, 0, 7, value.length);
    out.push(...Buffer.from(value, "latin1"));
  }
  return Uint8Array.from(out);
}
