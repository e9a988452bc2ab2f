/** Fields of RDATA that are octets or bits: character strings, keys, digests, bit maps. */
import { recordTypeField, u16 } from "./fields.ts";
import {
  fromBase32Hex,
  fromBase64,
  fromHex,
  octetAt,
  toBase32Hex,
  toBase64,
  toHex,
  toLatin1,
} from "./octets.ts";
import { quoteText, type RdataScanner } from "./rdata-scanner.ts";
import type { Field } from "./record-kind.ts";
import { recordTypeName } from "./type-names.ts";

/** Of one character string (RFC 1035 section 3.3). */
export const MAX_STRING_OCTETS = 255;

/** Octets after one length octet, quoted in text. */
export const characterString: Field<Uint8Array> = {
  read: (reader) => reader.characterString(),
  check: (reader) => reader.skip(reader.u8()),
  write: (writer, value) => writer.characterString(value),
  print: quoteText,
  parse(scanner) {
    const octets = scanner.characterString("a text");
    if (octets.length > MAX_STRING_OCTETS) throw scanner.fail("text longer than 255 octets; split it");
    return octets;
  },
};

/** A character string that may be missing at the end (ISDN). */
export const optionalCharacterString: Field<Uint8Array | undefined> = {
  read: (reader) => (reader.remaining > 0 ? reader.characterString() : undefined),
  write(writer, value) {
    if (value !== undefined) writer.characterString(value);
  },
  print: (value) => (value === undefined ? "" : quoteText(value)),
  parse: (scanner) => (scanner.hasMore ? characterString.parse(scanner) : undefined),
};

/** One or more character strings up to the end (TXT). A text longer than one string becomes several, as in CoreDNS. */
export const characterStrings: Field<readonly Uint8Array[]> = {
  read(reader) {
    const strings: Uint8Array[] = [];
    do strings.push(reader.characterString());
    while (reader.remaining > 0);
    return strings;
  },
  check(reader) {
    do reader.skip(reader.u8());
    while (reader.remaining > 0);
  },
  write(writer, value) {
    for (const string of value) writer.characterString(string);
  },
  print: (value) => value.map(quoteText).join(" "),
  parse(scanner) {
    const strings: Uint8Array[] = [];
    do {
      const text = scanner.characterString("a text");
      for (let at = 0; at === 0 || at < text.length; at += MAX_STRING_OCTETS)
        strings.push(text.subarray(at, at + MAX_STRING_OCTETS));
    } while (scanner.hasMore);
    return strings;
  },
};

/** A CAA tag: letters and digits, printed without quotes (RFC 8659 section 4.1). */
export const bareCharacterString: Field<Uint8Array> = {
  ...characterString,
  print(value) {
    const text = toLatin1(value);
    return /^[0-9A-Za-z]+$/.test(text) ? text : quoteText(value);
  },
};

/** Octets to the end of the RDATA, quoted in text (CAA, URI). */
export const textToEnd: Field<Uint8Array> = {
  read: (reader) => reader.rest(),
  check: (reader) => reader.skip(reader.remaining),
  write: (writer, value) => writer.octets(value),
  print: quoteText,
  parse: (scanner) => scanner.characterString("a text"),
};

/** Octets to the end, in text as base64. An empty value must be written as `""`, so that a missing key is not an empty key. */
export const base64ToEnd: Field<Uint8Array> = {
  read: (reader) => reader.rest(),
  check: (reader) => reader.skip(reader.remaining),
  write: (writer, value) => writer.octets(value),
  print: (value) => (value.length === 0 ? '""' : toBase64(value)),
  parse: (scanner) => base64Of(scanner, scanner.restJoined("base64")),
};

/** Like {@link base64ToEnd}, but an empty value prints as nothing (IPSECKEY, KEY). */
export const optionalBase64ToEnd: Field<Uint8Array> = {
  ...base64ToEnd,
  print: toBase64,
  parse: (scanner) => base64Of(scanner, scanner.restJoined()),
};

/** Like {@link base64ToEnd}, but `-` if empty (DOA). */
export const base64OrDash: Field<Uint8Array> = {
  ...base64ToEnd,
  print: (value) => (value.length === 0 ? "-" : toBase64(value)),
  parse(scanner) {
    const text = scanner.restJoined("base64");
    return text === "-" ? new Uint8Array(0) : base64Of(scanner, text);
  },
};

function base64Of(scanner: RdataScanner, text: string): Uint8Array {
  const octets = fromBase64(text);
  if (octets === undefined) throw scanner.fail("not base64");
  return octets;
}

/** Octets after a 16-bit length, in text as the length and, unless it is 0, base64 (TSIG, TKEY). */
export const base64WithLength: Field<Uint8Array> = {
  read: (reader) => reader.octets(reader.u16()),
  write(writer, value) {
    u16.write(writer, value.length);
    writer.octets(value);
  },
  print: (value) => (value.length === 0 ? "0" : `${value.length} ${toBase64(value)}`),
  parse(scanner) {
    const length = u16.parse(scanner);
    if (length === 0) return new Uint8Array(0);
    const octets = fromBase64(scanner.word("base64"));
    if (octets?.length !== length) throw scanner.fail(`not ${length} octets in base64`);
    return octets;
  },
};

/** Octets to the end, in text as hexadecimal, and as `""` if empty. */
export const hexToEnd: Field<Uint8Array> = {
  read: (reader) => reader.rest(),
  check: (reader) => reader.skip(reader.remaining),
  write: (writer, value) => writer.octets(value),
  print: (value) => (value.length === 0 ? '""' : toHex(value).toUpperCase()),
  parse(scanner) {
    const octets = fromHex(scanner.restJoined("hexadecimal"));
    if (octets === undefined) throw scanner.fail("not hexadecimal");
    return octets;
  },
};

/** Octets after one length octet, in text as hexadecimal, `-` if empty (NSEC3 salt, RFC 5155 section 3.3). */
export const saltField: Field<Uint8Array> = {
  read: (reader) => reader.characterString(),
  check: (reader) => reader.skip(reader.u8()),
  write: (writer, value) => writer.characterString(value),
  print: (value) => (value.length === 0 ? "-" : toHex(value).toUpperCase()),
  parse(scanner) {
    const word = scanner.word("a salt");
    const octets = word === "-" ? new Uint8Array(0) : fromHex(word);
    if (octets === undefined || octets.length > 255) throw scanner.fail(`not a salt: "${word}"`);
    return octets;
  },
};

/** Octets after one length octet, never empty, in text as base32hex (NSEC3 next hashed owner, RFC 5155 section 3.2). */
export const base32Field: Field<Uint8Array> = {
  read(reader) {
    const octets = reader.characterString();
    if (octets.length === 0) throw reader.bad("empty hash");
    return octets;
  },
  write: (writer, value) => writer.characterString(value),
  print: toBase32Hex,
  parse(scanner) {
    const word = scanner.word("a hash in base32");
    const octets = fromBase32Hex(word);
    if (octets === undefined || octets.length === 0 || octets.length > 255)
      throw scanner.fail(`not base32: "${word}"`);
    return octets;
  },
};

/**
 * A fixed number of octets, in text as groups of `group` octets in hexadecimal joined by `separator` (EUI48, NID). Groups of more
 * than one octet may omit leading zeroes, as in an IPv6 address.
 */
export function fixedOctets(length: number, separator: string, group = 1): Field<Uint8Array> {
  const digits = group * 2;
  const fewest = group === 1 ? digits : 1;
  return {
    read: (reader) => reader.octets(length),
    write(writer, value) {
      if (value.length !== length) throw new RangeError(`field takes ${length} octets, not ${value.length}`);
      writer.octets(value);
    },
    print(value) {
      const parts: string[] = [];
      for (let at = 0; at < length; at += group) parts.push(toHex(value.subarray(at, at + group)));
      return parts.join(separator);
    },
    parse(scanner) {
      const word = scanner.word("hexadecimal octets");
      const parts = word.split(separator);
      const octets = parts.every((part) => part.length >= fewest && part.length <= digits)
        ? fromHex(parts.map((part) => part.padStart(digits, "0")).join(""))
        : undefined;
      if (octets?.length !== length) throw scanner.fail(`not ${length} octets in hexadecimal: "${word}"`);
      return octets;
    },
  };
}

/** Type bit maps (RFC 4034 section 4.1.2): the types in ascending order. */
export const typeBitmap: Field<readonly number[]> = {
  read(reader) {
    const types: number[] = [];
    let previous = -1;
    while (reader.remaining > 0) {
      const window = reader.u8();
      const bits = reader.characterString();
      // A window out of order, or with trailing zero octets, would decode to the same types as other octets, and so break a
      // signature over them.
      if (window <= previous || bits.length > 32 || (bits.at(-1) ?? 0) === 0)
        throw reader.bad("bad type bit map");
      previous = window;
      addSetBits(types, bits, window * 256);
    }
    return types;
  },
  write(writer, value) {
    const types = ascending(value);
    let start = 0;
    while (start < types.length) {
      const window = (types[start] ?? 0) >>> 8;
      let end = start;
      while (end < types.length && (types[end] ?? 0) >>> 8 === window) end++;
      if (window > 255) throw new RangeError(`not a record type: ${types[start]}`);
      writer.u8(window);
      writer.characterString(bitMap(types.slice(start, end).map((type) => type & 0xff)));
      start = end;
    }
  },
  print: printTypes,
  parse: (scanner) => parseAscending(scanner, recordTypeField),
};

/** One bit map of the types below 128 (NXT, RFC 2535 section 5.2). */
export const lowTypeBitmap: Field<readonly number[]> = bitMapToEnd(128, "types", {
  print: printTypes,
  parse: (scanner) => parseAscending(scanner, recordTypeField),
});

/** Services as a bit map of port numbers (WKS, RFC 1035 section 3.4.2); text has numbers. */
export const portBitmap: Field<readonly number[]> = bitMapToEnd(65536, "ports", {
  print: (value) => value.join(" "),
  parse: (scanner) => parseAscending(scanner, u16),
});

function bitMapToEnd(
  most: number,
  what: string,
  text: Pick<Field<readonly number[]>, "print" | "parse">,
): Field<readonly number[]> {
  return {
    read(reader) {
      if (reader.remaining > most / 8) throw reader.bad(`bit map of more than ${most} ${what}`);
      const values: number[] = [];
      addSetBits(values, reader.rest(), 0);
      return values;
    },
    write(writer, value) {
      const values = ascending(value);
      if ((values.at(-1) ?? 0) >= most) throw new RangeError(`bit map holds ${most} ${what}, not ${value}`);
      writer.octets(bitMap(values));
    },
    print: text.print,
    parse(scanner) {
      const values = text.parse(scanner);
      if ((values.at(-1) ?? 0) >= most) throw scanner.fail(`only ${what} below ${most} are possible here`);
      return values;
    },
  };
}

function printTypes(types: readonly number[]): string {
  return types.map(recordTypeName).join(" ");
}

function parseAscending(scanner: RdataScanner, element: Field<number>): number[] {
  const values: number[] = [];
  while (scanner.hasMore) values.push(element.parse(scanner));
  return ascending(values);
}

function ascending(values: readonly number[]): number[] {
  return [...new Set(values)].sort((a, b) => a - b);
}

function addSetBits(values: number[], bits: Uint8Array, base: number): void {
  for (const [at, octet] of bits.entries()) {
    for (let bit = 0; bit < 8; bit++) if (octet & (0x80 >>> bit)) values.push(base + at * 8 + bit);
  }
}

/** Bit 0 is the highest bit of the first octet; as short as possible. `values` ascend. */
function bitMap(values: readonly number[]): Uint8Array {
  const highest = values.at(-1);
  const bits = new Uint8Array(highest === undefined ? 0 : (highest >>> 3) + 1);
  for (const value of values) bits[value >>> 3] = octetAt(bits, value >>> 3) | (0x80 >>> (value & 7));
  return bits;
}
