/** Fields of RDATA: numbers, times, addresses and names. `octet-fields.ts` has the fields of octets and bits. */
import { formatIpv4, formatIpv6, parseIpv4, parseIpv6 } from "../lib/net/ip-address.ts";
import type { Name } from "./name.ts";
import { upperCaseAscii } from "./numbers.ts";
import type { RdataScanner } from "./rdata-scanner.ts";
import type { Field } from "./record-kind.ts";
import { parseRecordType, recordTypeName } from "./type-names.ts";
import type { WireReader } from "./wire-reader.ts";
import type { WireWriter } from "./wire-writer.ts";

function unsigned(
  bits: 8 | 16 | 32 | 48,
  read: (reader: WireReader) => number,
  write: (writer: WireWriter, value: number) => void,
): Field<number> {
  const most = 2 ** bits - 1;
  return {
    read,
    write(writer, value) {
      if (!(value >= 0 && value <= most))
        throw new RangeError(`a field of ${bits} bits does not hold ${value}`);
      write(writer, value);
    },
    print: (value) => String(value),
    parse: (scanner) => scanner.integer(`a number of ${bits} bits`, most),
  };
}

const readU8 = (reader: WireReader): number => reader.u8();
const readU16 = (reader: WireReader): number => reader.u16();
const readU32 = (reader: WireReader): number => reader.u32();
const readU48 = (reader: WireReader): number => reader.u48();

export const u8: Field<number> = unsigned(8, readU8, (writer, value) => writer.u8(value));
export const u16: Field<number> = unsigned(16, readU16, (writer, value) => writer.u16(value));
export const u32: Field<number> = unsigned(32, readU32, (writer, value) => writer.u32(value));
export const u48: Field<number> = unsigned(48, readU48, (writer, value) => writer.u48(value));

export const u64: Field<bigint> = {
  read: (reader) => reader.u64(),
  write(writer, value) {
    if (BigInt.asUintN(64, value) !== value)
      throw new RangeError(`a field of 64 bits does not hold ${value}`);
    writer.u64(value);
  },
  print: (value) => value.toString(),
  parse(scanner) {
    const word = scanner.word("a number of 64 bits");
    if (!/^\d{1,20}$/.test(word) || BigInt.asUintN(64, BigInt(word)) !== BigInt(word))
      throw scanner.fail(`not a number of 64 bits: "${word}"`);
    return BigInt(word);
  },
};

/** Text may have the number as a mnemonic in any case, and prints the mnemonic. */
export function mnemonic(base: Field<number>, names: Readonly<Record<string, number>>): Field<number> {
  const byName = new Map(Object.entries(names));
  const byNumber = new Map(Object.entries(names).map(([name, number]) => [number, name]));
  return {
    ...base,
    print: (value) => byNumber.get(value) ?? base.print(value),
    parse(scanner) {
      const known = byName.get(upperCaseAscii(scanner.peek()?.text ?? ""));
      if (known === undefined) return base.parse(scanner);
      scanner.token("a mnemonic");
      return known;
    },
  };
}

/** Text may have the number as a mnemonic, but prints the number, as `dig` does. */
export function numberOrMnemonic(
  base: Field<number>,
  names: Readonly<Record<string, number>>,
): Field<number> {
  return { ...mnemonic(base, names), print: (value) => base.print(value) };
}

/** Seconds; zone text may have units (`1h30m`), as in BIND. */
export const seconds: Field<number> = {
  ...u32,
  parse(scanner) {
    const token = scanner.token("a time in seconds");
    const value = parseTtl(token.text);
    if (value === undefined) throw scanner.fail(`not a time in seconds: "${token.text}"`, token);
    return value;
  },
};

/** A TTL in zone text: a number, or numbers with the units w, d, h, m, s; `undefined` above 2^32 - 1. */
export function parseTtl(text: string): number | undefined {
  if (/^\d+$/.test(text)) return Number(text) <= 0xffffffff ? Number(text) : undefined;
  if (!/^(\d+[wdhms])+$/i.test(text)) return undefined;
  let total = 0;
  for (const [, count, unit] of text.toLowerCase().matchAll(/(\d+)([wdhms])/g)) {
    total += Number(count) * (TTL_UNITS[unit ?? "s"] ?? 1);
  }
  return total <= 0xffffffff ? total : undefined;
}

const TTL_UNITS: Readonly<Record<string, number>> = { w: 604800, d: 86400, h: 3600, m: 60, s: 1 };

/** A point in time, seconds since 1970 modulo 2^32, in text YYYYMMDDHHmmSS (RFC 4034 section 3.2). */
export const signatureTime: Field<number> = {
  ...u32,
  print: printTime,
  parse(scanner) {
    const word = scanner.word("a time");
    if (/^\d{1,10}$/.test(word) && Number(word) <= 0xffffffff) return Number(word);
    const [, year, month, day, hour, minute, second] =
      /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/.exec(word) ?? [];
    const time = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`) / 1000;
    // Date.parse accepts the 30th of February and the hour 24; printing the result detects them.
    if (Number.isNaN(time) || printTime(time) !== word)
      throw scanner.fail(`not a time of the form YYYYMMDDHHmmSS: "${word}"`);
    // Times before 1970 wrap, as do those after 2106.
    return time >>> 0;
  },
};

function printTime(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace(/[-:T]|\.000Z$/g, "");
}

/** A record type by its mnemonic (RRSIG type covered). */
export const recordTypeField: Field<number> = {
  ...u16,
  print: (value) => recordTypeName(value),
  parse(scanner) {
    const word = scanner.word("a record type");
    const type = parseRecordType(word);
    if (type === undefined) throw scanner.fail(`unknown record type "${word}"`);
    return type;
  },
};

const addressField = (
  what: string,
  size: number,
  format: (octets: Uint8Array, at: number) => string,
  parse: (text: string) => Uint8Array | undefined,
): Field<string> => ({
  read(reader) {
    const at = reader.offset;
    reader.skip(size);
    return format(reader.bytes, at);
  },
  check: (reader) => reader.skip(size),
  write(writer, value) {
    const octets = parse(value);
    if (octets === undefined) throw new RangeError(`not ${what}: "${value}"`);
    writer.octets(octets);
  },
  print: (value) => value,
  parse(scanner) {
    const token = scanner.token(what);
    const octets = parse(token.text);
    if (octets === undefined) throw scanner.fail(`not ${what}: "${token.text}"`, token);
    return format(octets, 0);
  },
});

/** An IPv4 address in dotted text. */
export const ipv4: Field<string> = addressField("an IPv4 address", 4, formatIpv4, parseIpv4);
/** An IPv6 address in the text of RFC 5952. */
export const ipv6: Field<string> = addressField("an IPv6 address", 16, formatIpv6, parseIpv6);

const nameField = (rules: {
  readonly compressed: boolean;
  readonly lowerInCanonical: boolean;
}): Field<Name> => ({
  read: (reader) => reader.name(),
  check: (reader) => reader.checkName(),
  write(writer, value) {
    if (writer.canonical && !rules.lowerInCanonical) writer.octets(value.wire);
    else writer.name(value, rules.compressed, true);
  },
  print: (value) => value.toString(),
  parse: (scanner: RdataScanner) => scanner.domainName("a domain name"),
});

/** A name of the RFC 1035 types, which may be compressed. */
export const compressedName: Field<Name> = nameField({ compressed: true, lowerInCanonical: true });
/** A name that is never compressed, yet lower-cased in canonical form (RFC 4034 section 6.2, RFC 6840 section 5.1). */
export const plainName: Field<Name> = nameField({ compressed: false, lowerInCanonical: true });
/** A name of the newer types: never compressed, canonical as spelled. */
export const spelledName: Field<Name> = nameField({ compressed: false, lowerInCanonical: false });
