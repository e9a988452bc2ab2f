/** Rows of the record table with addresses in a grammar of their own: NSAP, ATMA, A6, APL. */
import { formatIpv4, formatIpv6, parseIpv4, parseIpv6 } from "../lib/net/ip-address.ts";
import { ipv6, u8, u16 } from "./fields.ts";
import type { Name } from "./name.ts";
import { fromHex, octetAt, toHex, toLatin1 } from "./octets.ts";
import { opaqueText, type RdataScanner } from "./rdata-scanner.ts";
import { type Field, type RecordKind, record, recordWith } from "./record-kind.ts";
import { RecordType } from "./type-names.ts";
import type { WireReader } from "./wire-reader.ts";

const nsapAddress: Field<Uint8Array> = {
  read: (reader) => reader.rest(),
  write: (writer, value) => writer.octets(value),
  print: (value) => `0x${toHex(value).toUpperCase()}`,
  parse(scanner) {
    const word = scanner.word("an NSAP address");
    const octets = /^0x/i.test(word) ? fromHex(word.slice(2).replaceAll(".", "")) : undefined;
    if (octets === undefined) throw scanner.fail(`not an NSAP address: "${word}"`);
    return octets;
  },
};

/** RFC 1706 section 5: `0x` and hexadecimal, dots ignored. */
export const nsap: RecordKind<{ address: Uint8Array }> = record("NSAP", RecordType.NSAP, {
  address: nsapAddress,
});

/** The ATM Forum's name system: format 0 is an address in hexadecimal, format 1 a number `+...`; dots ignored. */
export const atma: RecordKind<{ format: number; address: Uint8Array }> = recordWith(
  "ATMA",
  RecordType.ATMA,
  ["format", "address"],
  {
    read: (reader) => ({ format: reader.u8(), address: reader.rest() }),
    write(writer, data) {
      u8.write(writer, data.format);
      writer.octets(data.address);
    },
    print({ format, address }) {
      if (format === 0 && address.length > 0) return toHex(address);
      if (format === 1 && /^\d+$/.test(toLatin1(address))) return `+${toLatin1(address)}`;
      return opaqueText(Uint8Array.of(format, ...address));
    },
    parse(scanner) {
      const word = scanner.word("an ATM address");
      const bare = word.replaceAll(".", "");
      if (/^\+\d+$/.test(bare))
        return { format: 1, address: new Uint8Array(Buffer.from(bare.slice(1), "latin1")) };
      const address = fromHex(bare);
      if (address === undefined || address.length === 0) throw scanner.fail(`not an ATM address: "${word}"`);
      return { format: 0, address };
    },
  },
);

/** RFC 2874 section 3.1: the bits of the address after the prefix, and the name that has the prefix. */
export const a6: RecordKind<{ prefixLength: number; suffix: string; prefixName: Name | undefined }> =
  recordWith("A6", RecordType.A6, ["prefixLength", "suffix", "prefixName"], {
    read(reader) {
      const prefixLength = reader.u8();
      if (prefixLength > 128) throw reader.bad("A6 prefix longer than 128 bits");
      const octets = new Uint8Array(16);
      octets.set(reader.octets(suffixOctets(prefixLength)), 16 - suffixOctets(prefixLength));
      return {
        prefixLength,
        suffix: formatIpv6(octets, 0),
        prefixName: prefixLength > 0 ? reader.name() : undefined,
      };
    },
    write(writer, { prefixLength, suffix, prefixName }) {
      const octets = parseIpv6(suffix);
      if (octets === undefined || prefixLength > 128 || prefixLength > 0 !== (prefixName !== undefined))
        throw new RangeError(`not A6 data: ${prefixLength} ${suffix} ${prefixName}`);
      u8.write(writer, prefixLength);
      writer.octets(octets.subarray(16 - suffixOctets(prefixLength)));
      if (prefixName !== undefined) writer.name(prefixName, false, true);
    },
    print({ prefixLength, suffix, prefixName }) {
      const parts = [String(prefixLength)];
      if (prefixLength < 128) parts.push(suffix);
      if (prefixName !== undefined) parts.push(prefixName.toString());
      return parts.join(" ");
    },
    parse(scanner) {
      const prefixLength = scanner.integer("a prefix length", 128);
      const octets = new Uint8Array(16);
      // Only the octets on the wire count, or text and wire would disagree.
      if (prefixLength < 128) {
        const whole = parseIpv6(ipv6.parse(scanner)) ?? octets;
        const start = 16 - suffixOctets(prefixLength);
        octets.set(whole.subarray(start), start);
      }
      return {
        prefixLength,
        suffix: formatIpv6(octets, 0),
        prefixName: prefixLength > 0 ? scanner.domainName("the prefix name") : undefined,
      };
    },
  });

function suffixOctets(prefixLength: number): number {
  return Math.ceil((128 - prefixLength) / 8);
}

/** An item of an APL record (RFC 3123). */
export interface AplItem {
  /** 1 is IPv4, 2 is IPv6. */
  readonly family: number;
  readonly prefixLength: number;
  readonly negated: boolean;
  /** Octets as on the wire: trailing zeroes are omitted. */
  readonly address: Uint8Array;
}

const addressPrefixes: Field<readonly AplItem[]> = {
  read(reader) {
    const prefixes: AplItem[] = [];
    while (reader.remaining > 0) prefixes.push(readAddressPrefix(reader));
    return prefixes;
  },
  write(writer, value) {
    for (const prefix of value) {
      if (!isAddressPrefix(prefix))
        throw new RangeError(`not an address prefix: ${printAddressPrefix(prefix)}`);
      u16.write(writer, prefix.family);
      u8.write(writer, prefix.prefixLength);
      writer.u8((prefix.negated ? 0x80 : 0) | prefix.address.length);
      writer.octets(prefix.address);
    }
  },
  print: (value) => value.map(printAddressPrefix).join(" "),
  parse(scanner) {
    const prefixes: AplItem[] = [];
    while (scanner.hasMore) prefixes.push(parseAddressPrefix(scanner));
    return prefixes;
  },
};

/** RFC 3123. */
export const apl: RecordKind<{ prefixes: readonly AplItem[] }> = record("APL", RecordType.APL, {
  prefixes: addressPrefixes,
});

const FAMILY_OCTETS: ReadonlyMap<number, number> = new Map([
  [1, 4],
  [2, 16],
]);

function isAddressPrefix({ family, prefixLength, address }: AplItem): boolean {
  const octets = FAMILY_OCTETS.get(family) ?? 127;
  return (
    address.length <= octets &&
    address.at(-1) !== 0 &&
    prefixLength <= (FAMILY_OCTETS.has(family) ? octets * 8 : 255)
  );
}

function readAddressPrefix(reader: WireReader): AplItem {
  const family = reader.u16();
  const prefixLength = reader.u8();
  const length = reader.u8();
  const prefix = {
    family,
    prefixLength,
    negated: length >= 0x80,
    address: reader.octets(length & 0x7f),
  };
  if (!isAddressPrefix(prefix)) throw reader.bad("bad address prefix");
  return prefix;
}

function printAddressPrefix({ family, prefixLength, negated, address }: AplItem): string {
  const octets = new Uint8Array(FAMILY_OCTETS.get(family) ?? 0);
  octets.set(address.subarray(0, octets.length));
  const text = family === 1 ? formatIpv4(octets) : family === 2 ? formatIpv6(octets) : toHex(address);
  return `${negated ? "!" : ""}${family}:${text}/${prefixLength}`;
}

function parseAddressPrefix(scanner: RdataScanner): AplItem {
  const word = scanner.word("an address prefix");
  const [, bang, familyText, addressText = "", lengthText] =
    /^(!?)(\d{1,5}):([^/]*)\/(\d{1,3})$/.exec(word) ?? [];
  const family = Number(familyText);
  const octets =
    family === 1 ? parseIpv4(addressText) : family === 2 ? parseIpv6(addressText) : fromHex(addressText);
  if (octets === undefined || !(family <= 65535)) throw scanner.fail(`not an address prefix: "${word}"`);
  let end = octets.length;
  while (end > 0 && octetAt(octets, end - 1) === 0) end--;
  const prefix = {
    family,
    prefixLength: Number(lengthText),
    negated: bang === "!",
    address: octets.slice(0, end),
  };
  if (!isAddressPrefix(prefix)) throw scanner.fail(`not an address prefix: "${word}"`);
  return prefix;
}
