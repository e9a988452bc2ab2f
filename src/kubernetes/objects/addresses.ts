/** Addresses as keys of a `Map`, and as the labels that Kubernetes DNS makes of them. */
import { formatIpAddress, formatIpv4, formatIpv6, parseIpv4, parseIpv6 } from "../../lib/net/ip-address.ts";

/**
 * An address in a form that a `Map` finds by value: for IPv4 the octets as a signed 32-bit number, which V8 keeps
 * without allocating; for IPv6 a string of 16 characters, one an octet.
 */
export type AddressKey = number | string;

/** The key of the 4 or 16 octets that start at `offset`. */
export function addressKey(octets: Uint8Array, offset = 0, length = octets.length): AddressKey {
  if (length === 4) {
    return (
      ((octets[offset] ?? 0) << 24) |
      ((octets[offset + 1] ?? 0) << 16) |
      ((octets[offset + 2] ?? 0) << 8) |
      (octets[offset + 3] ?? 0)
    );
  }
  let key = "";
  for (let index = 0; index < length; index++) key += String.fromCharCode(octets[offset + index] ?? 0);
  return key;
}

/** The 4 or 16 octets behind a key. */
export function addressOfKey(key: AddressKey): Uint8Array {
  if (typeof key === "number") return Uint8Array.of(key >>> 24, key >>> 16, key >>> 8, key);
  const octets = new Uint8Array(key.length);
  for (let index = 0; index < key.length; index++) octets[index] = key.charCodeAt(index);
  return octets;
}

/** The address behind a key, for logs and tests. */
export function formatAddressKey(key: AddressKey): string {
  return formatIpAddress(addressOfKey(key));
}

/**
 * The label of an endpoint that has no name of its own (docs/spec/kubernetes-dns.md#endpoint-names): the canonical text with `-` for each `.` or `:`, and
 * a `0` where that would end in `-`.
 */
export function dashedAddress(octets: Uint8Array, offset: number, length: 4 | 16): string {
  if (length === 4) return formatIpv4(octets, offset).replaceAll(".", "-");
  const text = formatIpv6(octets, offset).replaceAll(/[.:]/g, "-");
  return text.endsWith("-") ? `${text}0` : text;
}

/**
 * The address behind a label with dashes (docs/spec/kubernetes-dns.md#pod-label): three single dashes make an IPv4 address, anything else stands for
 * colons. Undefined for what is no address. Several labels may mean one address.
 */
export function parseDashedAddress(label: string): Uint8Array | undefined {
  const parts = label.split("-");
  if (parts.length === 4 && !parts.includes("")) return parseIpv4(parts.join("."));
  return parseIpv6(parts.join(":"));
}

/** The same addresses in the same order. */
export function equalAddressLists(left: readonly Uint8Array[], right: readonly Uint8Array[]): boolean {
  return left.length === right.length && left.every((octets, index) => equalOctets(octets, right[index]));
}

export function equalOctets(left: Uint8Array, right: Uint8Array | undefined): boolean {
  if (right === undefined || left.length !== right.length) return false;
  for (let index = 0; index < left.length; index++) if (left[index] !== right[index]) return false;
  return true;
}
