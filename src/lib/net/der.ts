/** DER (ITU-T X.690 section 10), limited to the needs of certificates and certificate requests. */

export const Tag = {
  INTEGER: 0x02,
  BIT_STRING: 0x03,
  OCTET_STRING: 0x04,
  OBJECT_IDENTIFIER: 0x06,
  UTF8_STRING: 0x0c,
  SEQUENCE: 0x30,
  SET: 0x31,
} as const;

export function tagged(tag: number, content: Uint8Array): Buffer {
  const { length } = content;
  const header =
    length < 0x80
      ? [tag, length]
      : length < 0x100
        ? [tag, 0x81, length]
        : [tag, 0x82, length >>> 8, length & 0xff];
  return Buffer.concat([Buffer.from(header), content]);
}

export function sequence(...parts: readonly Uint8Array[]): Buffer {
  return tagged(Tag.SEQUENCE, Buffer.concat(parts));
}

/** @param octets big-endian, in two's complement */
export function integer(octets: Uint8Array): Buffer {
  return tagged(Tag.INTEGER, octets);
}

/** @param octets all bits count */
export function bitString(octets: Uint8Array): Buffer {
  return tagged(Tag.BIT_STRING, Buffer.concat([Buffer.from([0]), octets]));
}

/** @param hex the encoded identifier, without tag and length */
export function objectIdentifier(hex: string): Buffer {
  return tagged(Tag.OBJECT_IDENTIFIER, Buffer.from(hex, "hex"));
}

/** One element of an encoding. */
export interface Element {
  readonly tag: number;
  readonly content: Buffer;
}

/** The input is not DER, or not the expected element. */
export class DerError extends Error {
  override readonly name = "DerError";
}

/**
 * The consecutive elements in these octets.
 * @throws DerError
 */
export function elementsOf(octets: Buffer): Element[] {
  const elements: Element[] = [];
  let at = 0;
  while (at < octets.length) {
    const tag = octets[at];
    const first = octets[at + 1];
    if (tag === undefined || first === undefined) throw new DerError("an element is cut off");
    at += 2;
    let length = first;
    if (first >= 0x80) {
      const octetsOfLength = first & 0x7f;
      if (octetsOfLength === 0 || octetsOfLength > 3 || at + octetsOfLength > octets.length)
        throw new DerError("the length of an element cannot be read");
      length = octets.readUIntBE(at, octetsOfLength);
      at += octetsOfLength;
    }
    if (at + length > octets.length) throw new DerError("an element is cut off");
    elements.push({ tag, content: octets.subarray(at, at + length) });
    at += length;
  }
  return elements;
}
