/** EDNS(0): the OPT pseudo-record (RFC 6891) and its options. */
import { formatIpAddress, parseIpAddress } from "../lib/net/ip-address.ts";
import { octetAt, readU16, readU32, toHex } from "./octets.ts";
import { escapeText } from "./rdata-scanner.ts";
import { RecordType } from "./type-names.ts";
import type { WireReader } from "./wire-reader.ts";
import type { WireWriter } from "./wire-writer.ts";

export const EdnsOptionCode = {
  LLQ: 1,
  UL: 2,
  NSID: 3,
  DAU: 5,
  DHU: 6,
  N3U: 7,
  CLIENT_SUBNET: 8,
  EXPIRE: 9,
  COOKIE: 10,
  TCP_KEEPALIVE: 11,
  PADDING: 12,
  CHAIN: 13,
  KEY_TAG: 14,
  EXTENDED_ERROR: 15,
  REPORT_CHANNEL: 18,
  ZONE_VERSION: 19,
} as const;

/** An option as on the wire; the functions below decode and encode the known ones. */
export interface EdnsOption {
  readonly code: number;
  readonly data: Uint8Array;
}

/** OPT of a message (RFC 6891). */
export interface Edns {
  /** The largest UDP message that the sender accepts, in octets. */
  readonly udpSize: number;
  readonly version: number;
  /** RFC 3225. */
  readonly dnssecOk: boolean;
  /**
   * The sender accepts NXDOMAIN with a compact denial (CO, RFC 9824 section 5.1); a server that supports it sets the bit in
   * replies.
   */
  readonly compactOk?: boolean;
  readonly options: readonly EdnsOption[];
}

const DO_BIT = 0x8000;
export const CO_BIT = 0x4000;

/** The octets of an OPT record without its options. */
export const OPT_FIXED_OCTETS = 11;

/** Writes the OPT record; `extendedRcode` is the whole 12-bit rcode, whose upper 8 bits OPT carries. */
export function writeOpt(writer: WireWriter, edns: Edns, extendedRcode: number): void {
  writer.u8(0);
  writer.u16(RecordType.OPT);
  writer.u16(edns.udpSize);
  writer.u8(extendedRcode >>> 4);
  writer.u8(edns.version);
  writer.u16((edns.dnssecOk ? DO_BIT : 0) | (edns.compactOk === true ? CO_BIT : 0));
  const start = writer.openLength();
  for (const option of edns.options) {
    writer.u16(option.code);
    writer.u16(option.data.length);
    writer.octets(option.data);
  }
  writer.closeLength(start);
}

/**
 * Reads OPT after its owner and type, which the caller has read.
 * @throws WireError
 */
export function readOpt(reader: WireReader): { edns: Edns; extendedRcodeBits: number } {
  const udpSize = reader.u16();
  const extendedRcodeBits = reader.u8();
  const version = reader.u8();
  const flags = reader.u16();
  const options = readOptions(reader, reader.u16());
  const dnssecOk = (flags & DO_BIT) !== 0;
  const compact = (flags & CO_BIT) === 0 ? undefined : { compactOk: true };
  return { edns: { udpSize, version, dnssecOk, ...compact, options }, extendedRcodeBits };
}

/** Reads options of `length` octets in total. */
export function readOptions(reader: WireReader, length: number): EdnsOption[] {
  const end = reader.offset + length;
  const options: EdnsOption[] = [];
  while (reader.offset < end) options.push({ code: reader.u16(), data: reader.octets(reader.u16()) });
  if (reader.offset !== end) throw reader.bad("options longer than their OPT record");
  return options;
}

/** The first option with this code; `undefined` without one. */
export function findOption(options: readonly EdnsOption[], code: number): EdnsOption | undefined {
  return options.find((option) => option.code === code);
}

/** RFC 7871 section 6. */
export interface ClientSubnet {
  /** 1 for IPv4, 2 for IPv6; 0 with empty prefixes from a client that hides its subnet, as `dig +subnet=0` does. */
  readonly family: number;
  readonly sourcePrefixLength: number;
  readonly scopePrefixLength: number;
  /** Text, bits after the source prefix zero; `0.0.0.0` for family 0. */
  readonly address: string;
}

/** `undefined` for a malformed option, including one with bits set after the source prefix. */
export function decodeClientSubnet(data: Uint8Array): ClientSubnet | undefined {
  if (data.length < 4) return undefined;
  const family = readU16(data, 0);
  const sourcePrefixLength = octetAt(data, 2);
  const scopePrefixLength = octetAt(data, 3);
  const width = ADDRESS_OCTETS[family];
  const octets = data.subarray(4);
  if (
    width === undefined ||
    sourcePrefixLength > width * 8 ||
    scopePrefixLength > width * 8 ||
    octets.length !== Math.ceil(sourcePrefixLength / 8) ||
    ((octets.at(-1) ?? 0) & spareBits(sourcePrefixLength)) !== 0
  )
    return undefined;
  const address = new Uint8Array(width || 4);
  address.set(octets);
  return { family, sourcePrefixLength, scopePrefixLength, address: formatIpAddress(address) };
}

/** `undefined` if the address does not belong to the family, or a prefix is too long for it. */
export function encodeClientSubnet(subnet: ClientSubnet): EdnsOption | undefined {
  const { family, sourcePrefixLength, scopePrefixLength } = subnet;
  const address = parseIpAddress(subnet.address);
  const width = ADDRESS_OCTETS[family];
  if (
    width === undefined ||
    address?.length !== (width || 4) ||
    sourcePrefixLength > width * 8 ||
    scopePrefixLength > width * 8
  )
    return undefined;
  const used = Math.ceil(sourcePrefixLength / 8);
  const data = new Uint8Array(4 + used);
  data.set([family >>> 8, family, sourcePrefixLength, scopePrefixLength]);
  data.set(address.subarray(0, used), 4);
  if (used > 0) data[3 + used] = octetAt(data, 3 + used) & ~spareBits(sourcePrefixLength);
  return { code: EdnsOptionCode.CLIENT_SUBNET, data };
}

/** By address family; family 0 has no address. */
const ADDRESS_OCTETS: readonly number[] = [0, 4, 16];

/** The bits of the prefix's last octet that do not belong to the prefix. */
function spareBits(prefixLength: number): number {
  return 0xff >>> (prefixLength % 8 || 8);
}

/** RFC 8914 section 4, and later registrations. */
export const ExtendedErrorCode = {
  OTHER: 0,
  UNSUPPORTED_DNSKEY_ALGORITHM: 1,
  UNSUPPORTED_DS_DIGEST: 2,
  STALE_ANSWER: 3,
  FORGED_ANSWER: 4,
  DNSSEC_INDETERMINATE: 5,
  DNSSEC_BOGUS: 6,
  SIGNATURE_EXPIRED: 7,
  SIGNATURE_NOT_YET_VALID: 8,
  DNSKEY_MISSING: 9,
  RRSIGS_MISSING: 10,
  NO_ZONE_KEY_BIT: 11,
  NSEC_MISSING: 12,
  CACHED_ERROR: 13,
  NOT_READY: 14,
  BLOCKED: 15,
  CENSORED: 16,
  FILTERED: 17,
  PROHIBITED: 18,
  STALE_NXDOMAIN: 19,
  NOT_AUTHORITATIVE: 20,
  NOT_SUPPORTED: 21,
  NO_REACHABLE_AUTHORITY: 22,
  NETWORK_ERROR: 23,
  INVALID_DATA: 24,
  SIGNATURE_EXPIRED_BEFORE_VALID: 25,
  TOO_EARLY: 26,
  UNSUPPORTED_NSEC3_ITERATIONS: 27,
  UNABLE_TO_CONFORM_TO_POLICY: 28,
  SYNTHESIZED: 29,
  INVALID_QUERY_TYPE: 30,
} as const;

/** An extended DNS error (RFC 8914) as an option of OPT. */
export function extendedError(infoCode: number, text = ""): EdnsOption {
  const words = Buffer.from(text);
  const data = new Uint8Array(2 + words.length);
  data.set([infoCode >>> 8, infoCode]);
  data.set(words, 2);
  return { code: EdnsOptionCode.EXTENDED_ERROR, data };
}

/** The code and the text of an extended DNS error; `undefined` for data that is too short. */
export function decodeExtendedError(data: Uint8Array): { infoCode: number; text: string } | undefined {
  if (data.length < 2) return undefined;
  return { infoCode: readU16(data, 0), text: Buffer.from(data.subarray(2)).toString("utf8") };
}

/** RFC 7873: 8 octets of the client, then none or 8 to 32 of the server. */
export function decodeCookie(data: Uint8Array): { client: Uint8Array; server: Uint8Array } | undefined {
  if (data.length !== 8 && (data.length < 16 || data.length > 40)) return undefined;
  return { client: data.subarray(0, 8), server: data.subarray(8) };
}

/** RFC 7828: the timeout in units of 100 ms, absent in a query. */
export function decodeTcpKeepalive(data: Uint8Array): { timeout: number | undefined } | undefined {
  if (data.length === 0) return { timeout: undefined };
  return data.length === 2 ? { timeout: readU16(data, 0) } : undefined;
}

/** RFC 7314: seconds until a zone expires, absent in a query. */
export function decodeExpire(data: Uint8Array): { expire: number | undefined } | undefined {
  if (data.length === 0) return { expire: undefined };
  return data.length === 4 ? { expire: readU32(data, 0) } : undefined;
}

/** RFC 7830: this many zero octets. */
export function padding(length: number): EdnsOption {
  return { code: EdnsOptionCode.PADDING, data: new Uint8Array(length) };
}

/** One option in words, for people; unknown and malformed ones by number and octets. */
export function formatOption({ code, data }: EdnsOption): string {
  return `${OPTION_NAMES.get(code) ?? `OPT=${code}`}: ${formatOptionData(code, data) ?? toHex(data)}`.trimEnd();
}

function formatOptionData(code: number, data: Uint8Array): string | undefined {
  switch (code) {
    case EdnsOptionCode.NSID:
      return `${toHex(data)} ("${escapeText(data)}")`;
    case EdnsOptionCode.CLIENT_SUBNET: {
      const subnet = decodeClientSubnet(data);
      return subnet && `${subnet.address}/${subnet.sourcePrefixLength}/${subnet.scopePrefixLength}`;
    }
    case EdnsOptionCode.EXTENDED_ERROR: {
      const error = decodeExtendedError(data);
      return (
        error &&
        (error.text === "" ? `${error.infoCode}` : `${error.infoCode} (${escapeText(data.subarray(2))})`)
      );
    }
    case EdnsOptionCode.TCP_KEEPALIVE: {
      const keepalive = decodeTcpKeepalive(data);
      return (
        keepalive && (keepalive.timeout === undefined ? "" : `${(keepalive.timeout / 10).toFixed(1)} secs`)
      );
    }
    case EdnsOptionCode.EXPIRE: {
      const expire = decodeExpire(data);
      return expire && (expire.expire === undefined ? "" : `${expire.expire}`);
    }
    case EdnsOptionCode.PADDING:
      return `${data.length} octets`;
    case EdnsOptionCode.KEY_TAG:
      return data.length % 2 === 0 ? formatKeyTags(data) : undefined;
    default:
      return undefined;
  }
}

function formatKeyTags(data: Uint8Array): string {
  const tags: number[] = [];
  for (let at = 0; at < data.length; at += 2) tags.push(readU16(data, at));
  return tags.join(" ");
}

const OPTION_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(EdnsOptionCode).map(([name, code]) => [code, name.replaceAll("_", "-")]),
);
