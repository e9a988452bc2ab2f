/** `struct sockaddr_in` and `sockaddr_in6` as octets. */

import { networkInterfaces } from "node:os";
import { formatIpv4, formatIpv6, isIpv4Mapped, parseScopedIpAddress } from "../../lib/net/ip-address.ts";
import { Linux, SocketAddress4, SocketAddress6 } from "./layouts.ts";
import type { Libc } from "./libc.ts";

/** Room for either. */
export const SOCKET_ADDRESS_OCTETS = SocketAddress6.OCTETS;
const PORT_AT = SocketAddress4.PORT;
const IPV4_AT = SocketAddress4.ADDRESS;
const IPV6_AT = SocketAddress6.ADDRESS;
const SCOPE_AT = SocketAddress6.SCOPE;

/**
 * Writes an address.
 * @param family of the socket: IPv4 addresses on an IPv6 socket are mapped (RFC 4291 section 2.5.5.2)
 * @param scope number of the interface of a link-local address
 * @returns the length for system calls
 */
export function writeSocketAddress(
  out: Uint8Array,
  offset: number,
  family: 4 | 6,
  address: Uint8Array,
  port: number,
  scope = 0,
): number {
  out.fill(0, offset, offset + SOCKET_ADDRESS_OCTETS);
  // The family is in host byte order, the port in network byte order.
  out[offset] = family === 4 ? Linux.AF_INET : Linux.AF_INET6;
  out[offset + PORT_AT] = port >>> 8;
  out[offset + PORT_AT + 1] = port;
  if (family === 4) {
    out.set(address, offset + IPV4_AT);
    return SocketAddress4.OCTETS;
  }
  if (address.length === 4) {
    out[offset + IPV6_AT + 10] = 0xff;
    out[offset + IPV6_AT + 11] = 0xff;
    out.set(address, offset + IPV6_AT + 12);
  } else {
    out.set(address, offset + IPV6_AT);
  }
  for (let at = 0; at < 4; at++) out[offset + SCOPE_AT + at] = scope >>> (8 * at);
  return SocketAddress6.OCTETS;
}

export function readPort(bytes: Uint8Array, offset: number): number {
  return ((bytes[offset + PORT_AT] ?? 0) << 8) | (bytes[offset + PORT_AT + 1] ?? 0);
}

/** 4 also for an IPv4 address that came to an IPv6 socket. */
export function readFamily(bytes: Uint8Array, offset: number): 4 | 6 {
  return bytes[offset] === Linux.AF_INET || isIpv4Mapped(bytes, offset + IPV6_AT) ? 4 : 6;
}

export function readAddress(bytes: Uint8Array, offset: number): string {
  if (bytes[offset] === Linux.AF_INET) return formatIpv4(bytes, offset + IPV4_AT);
  if (isIpv4Mapped(bytes, offset + IPV6_AT)) return formatIpv4(bytes, offset + IPV6_AT + 12);
  return formatIpv6(bytes, offset + IPV6_AT);
}

export function readAddressOctets(bytes: Uint8Array, offset: number): Uint8Array {
  if (bytes[offset] === Linux.AF_INET) return bytes.slice(offset + IPV4_AT, offset + IPV4_AT + 4);
  if (isIpv4Mapped(bytes, offset + IPV6_AT)) return bytes.slice(offset + IPV6_AT + 12, offset + IPV6_AT + 16);
  return bytes.slice(offset + IPV6_AT, offset + IPV6_AT + 16);
}

/** An address and its zone index as numbers; `undefined` for a text that is not an address. */
export function parseHost(text: string): { octets: Uint8Array; scope: number } | undefined {
  const parsed = parseScopedIpAddress(text);
  if (parsed === undefined) return undefined;
  return { octets: parsed.octets, scope: parsed.zone === undefined ? 0 : interfaceNumber(parsed.zone) };
}

/** Address and port that a socket is bound to. @returns a negative number if the system refuses */
export function readLocalName(libc: Libc, fd: number, out: Uint8Array): number {
  return libc.getsockname(fd, out, Uint8Array.of(SOCKET_ADDRESS_OCTETS, 0, 0, 0));
}

/** The number of a network interface by name, for the zone index of a link-local address. */
function interfaceNumber(name: string): number {
  try {
    for (const entry of networkInterfaces()[name] ?? []) {
      if (entry.family === "IPv6" && entry.scopeid > 0) return entry.scopeid;
    }
  } catch {
    // Out of descriptors: the call that needs the number fails with an error of its own.
    return 0;
  }
  return /^\d+$/.test(name) ? Number(name) : 0;
}
