/** Parameters of SVCB and HTTPS records (RFC 9460 section 2.1 and 7, RFC 9461, RFC 9540). */
import { formatIpv4, formatIpv6, parseIpv4, parseIpv6 } from "../lib/net/ip-address.ts";
import { u16 } from "./fields.ts";
import { fromBase64, octetAt, readU16, toBase64, toLatin1, writeU16 } from "./octets.ts";
import { quoteText, type RdataScanner, unescapeText } from "./rdata-scanner.ts";
import type { Field } from "./record-kind.ts";

/** A parameter of an SVCB or HTTPS record (RFC 9460). */
export interface ServiceParameter {
  readonly key: number;
  /** Octets as on the wire. */
  readonly value: Uint8Array;
}

export const ServiceParameterKey = {
  mandatory: 0,
  alpn: 1,
  "no-default-alpn": 2,
  port: 3,
  ipv4hint: 4,
  ech: 5,
  ipv6hint: 6,
  dohpath: 7,
  ohttp: 8,
} as const;

const KEY_NUMBERS: ReadonlyMap<string, number> = new Map(Object.entries(ServiceParameterKey));
const KEY_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(ServiceParameterKey).map(([name, key]) => [key, name]),
);

/** Parameters in ascending order of key, each key once. Values are checked in text, and accepted unchecked on the wire. */
export const serviceParameters: Field<readonly ServiceParameter[]> = {
  read(reader) {
    const parameters: ServiceParameter[] = [];
    let previous = -1;
    while (reader.remaining > 0) {
      const key = reader.u16();
      if (key <= previous) throw reader.bad("service parameters out of order");
      previous = key;
      parameters.push({ key, value: reader.octets(reader.u16()) });
    }
    return parameters;
  },
  write(writer, value) {
    for (const parameter of [...value].sort((a, b) => a.key - b.key)) {
      u16.write(writer, parameter.key);
      u16.write(writer, parameter.value.length);
      writer.octets(parameter.value);
    }
  },
  print: (value) => value.map(printParameter).join(" "),
  parse(scanner) {
    const parameters = new Map<number, Uint8Array>();
    while (scanner.hasMore) {
      const { key, value } = parseParameter(scanner);
      if (parameters.has(key)) throw scanner.fail(`service parameter ${keyName(key)} given twice`);
      parameters.set(key, value);
    }
    const fault = inconsistency(parameters);
    if (fault !== undefined) throw scanner.fail(fault);
    return Array.from(parameters, ([key, value]) => ({ key, value })).sort((a, b) => a.key - b.key);
  },
};

/** Contradictions that RFC 9460 forbids across parameters: sections 7.1.1 and 8. */
function inconsistency(parameters: ReadonlyMap<number, Uint8Array>): string | undefined {
  if (parameters.has(ServiceParameterKey["no-default-alpn"]) && !parameters.has(ServiceParameterKey.alpn))
    return "no-default-alpn needs alpn";
  const mandatory = parameters.get(ServiceParameterKey.mandatory) ?? new Uint8Array(0);
  let previous = -1;
  for (let at = 0; at + 1 < mandatory.length; at += 2) {
    const key = readU16(mandatory, at);
    if (key === ServiceParameterKey.mandatory) return "mandatory names itself";
    if (key === previous) return `mandatory names ${keyName(key)} twice`;
    if (!parameters.has(key)) return `${keyName(key)} is mandatory but missing`;
    previous = key;
  }
  return undefined;
}

function keyName(key: number): string {
  return KEY_NAMES.get(key) ?? `key${key}`;
}

/** Names are in lower case, numbers without leading zeroes (RFC 9460 section 2.1). */
function keyNumber(name: string): number | undefined {
  return KEY_NUMBERS.get(name) ?? numberedKey(name);
}

function numberedKey(name: string): number | undefined {
  const number = /^key(0|[1-9]\d{0,4})$/.exec(name)?.[1];
  return number !== undefined && Number(number) <= 0xffff ? Number(number) : undefined;
}

/** A value that is invalid for its key is printed under the number of the key, which accepts any octets. */
function printParameter({ key, value }: ServiceParameter): string {
  const text = printValue(key, value);
  if (text !== undefined) return text === "" ? keyName(key) : `${keyName(key)}=${text}`;
  return value.length === 0 ? `key${key}` : `key${key}=${quoteText(value)}`;
}

/** `undefined` for a key without name, and for a value that is invalid for the key. */
function printValue(key: number, value: Uint8Array): string | undefined {
  const { length } = value;
  switch (key) {
    case ServiceParameterKey.mandatory: {
      if (length === 0 || length % 2 !== 0) return undefined;
      const keys: string[] = [];
      for (let at = 0; at < length; at += 2) keys.push(keyName(readU16(value, at)));
      return keys.join(",");
    }
    case ServiceParameterKey.alpn: {
      const ids = splitAlpn(value);
      return ids === undefined
        ? undefined
        : quoteText(Buffer.from(ids.map(escapeListItem).join(","), "latin1"));
    }
    case ServiceParameterKey["no-default-alpn"]:
    case ServiceParameterKey.ohttp:
      return length === 0 ? "" : undefined;
    case ServiceParameterKey.port:
      return length === 2 ? String(readU16(value, 0)) : undefined;
    case ServiceParameterKey.ipv4hint:
      return length > 0 && length % 4 === 0 ? hints(value, 4, formatIpv4) : undefined;
    case ServiceParameterKey.ipv6hint:
      return length > 0 && length % 16 === 0 ? hints(value, 16, formatIpv6) : undefined;
    case ServiceParameterKey.ech:
      return toBase64(value);
    case ServiceParameterKey.dohpath:
      return length > 0 ? quoteText(value) : undefined;
    default:
      return undefined;
  }
}

function hints(value: Uint8Array, size: number, format: (octets: Uint8Array, at: number) => string): string {
  const addresses: string[] = [];
  for (let at = 0; at < value.length; at += size) addresses.push(format(value, at));
  return addresses.join(",");
}

function splitAlpn(value: Uint8Array): string[] | undefined {
  const ids: string[] = [];
  for (let at = 0; at < value.length; ) {
    const length = octetAt(value, at);
    if (length === 0 || at + 1 + length > value.length) return undefined;
    ids.push(toLatin1(value.subarray(at + 1, at + 1 + length)));
    at += 1 + length;
  }
  return ids.length === 0 ? undefined : ids;
}

/** In a comma-separated list a comma or backslash of an item is escaped once more (RFC 9460 appendix A.1). */
function escapeListItem(item: string): string {
  return item.replace(/[\\,]/g, "\\$&");
}

function parseParameter(scanner: RdataScanner): ServiceParameter {
  const token = scanner.token("a service parameter");
  const equals = token.text.indexOf("=");
  const name = equals < 0 ? token.text : token.text.slice(0, equals);
  const key = keyNumber(name);
  if (key === undefined || token.quoted) throw scanner.fail(`unknown service parameter "${name}"`, token);
  let raw = equals < 0 ? undefined : token.text.slice(equals + 1);
  // key="value" is one word directly followed by a quoted one.
  if (raw === "" && scanner.peek()?.quoted === true && scanner.peek()?.adjacent === true)
    raw = scanner.word("a value");
  const next = scanner.peek();
  if (next?.adjacent === true) throw scanner.fail("no space between service parameters", next);
  const octets = unescapeText(raw ?? "");
  const value = octets === undefined || numberedKey(name) !== undefined ? octets : parseValue(key, octets);
  if (value === undefined) throw scanner.fail(`bad value for service parameter "${name}"`, token);
  return { key, value };
}

/** Flags have no value, or an empty one in text; `ech` without a value is accepted as in CoreDNS, BIND and NSD. */
function parseValue(key: number, octets: Uint8Array): Uint8Array | undefined {
  if (key === ServiceParameterKey["no-default-alpn"] || key === ServiceParameterKey.ohttp)
    return octets.length === 0 ? octets : undefined;
  if (octets.length === 0) return key === ServiceParameterKey.ech ? octets : undefined;
  const raw = toLatin1(octets);
  switch (key) {
    case ServiceParameterKey.mandatory: {
      const keys = raw.split(",").map((name) => keyNumber(name) ?? -1);
      if (keys.includes(-1)) return undefined;
      const list = new Uint8Array(keys.length * 2);
      for (const [index, number] of keys.sort((a, b) => a - b).entries()) writeU16(list, index * 2, number);
      return list;
    }
    case ServiceParameterKey.alpn:
      return parseAlpn(octets);
    case ServiceParameterKey.port: {
      if (!/^\d{1,5}$/.test(raw) || Number(raw) > 0xffff) return undefined;
      return Uint8Array.of(Number(raw) >>> 8, Number(raw));
    }
    case ServiceParameterKey.ipv4hint:
      return joinAddresses(raw, parseIpv4);
    case ServiceParameterKey.ipv6hint:
      return joinAddresses(raw, parseIpv6);
    case ServiceParameterKey.ech:
      return fromBase64(raw);
    default:
      return octets;
  }
}

function joinAddresses(raw: string, parse: (text: string) => Uint8Array | undefined): Uint8Array | undefined {
  const octets: number[] = [];
  for (const text of raw.split(",")) {
    const address = parse(text);
    if (address === undefined) return undefined;
    octets.push(...address);
  }
  return Uint8Array.from(octets);
}

/** A comma-separated list of identifiers (RFC 9460 appendix A.1). */
function parseAlpn(list: Uint8Array): Uint8Array | undefined {
  const octets: number[] = [];
  let item: number[] = [];
  const close = (): boolean => {
    const fits = item.length > 0 && item.length <= 255;
    octets.push(item.length, ...item);
    item = [];
    return fits;
  };
  for (let at = 0; at < list.length; at++) {
    const octet = octetAt(list, at);
    if (octet === 0x2c) {
      if (!close()) return undefined;
    } else if (octet === 0x5c && at + 1 < list.length) {
      item.push(octetAt(list, ++at));
    } else {
      item.push(octet);
    }
  }
  return close() ? Uint8Array.from(octets) : undefined;
}
