/** Addresses to listen on, as Go's `net` package reads them: `0.0.0.0`, `::` and no address at all mean the same. */
import { formatIpAddress, isIpv4Mapped, parseScopedIpAddress } from "./ip-address.ts";

/**
 * The canonical spelling of an address; empty for every address of both families. An IPv4-mapped IPv6 address is an
 * IPv4 address. A name stays as it is.
 */
export function canonicalHost(host: string): string {
  const parsed = parseScopedIpAddress(host);
  if (parsed === undefined) return host;
  const octets = isIpv4Mapped16(parsed.octets) ? parsed.octets.subarray(12) : parsed.octets;
  if (octets.every((octet) => octet === 0)) return "";
  const text = formatIpAddress(octets);
  return parsed.zone === undefined ? text : `${text}%${parsed.zone}`;
}

/** Whether it stands for every address of the machine. */
export function isWildcardHost(host: string): boolean {
  return canonicalHost(host) === "";
}

/** Whether two sockets listen on a common address. */
export function hostsOverlap(one: string, other: string): boolean {
  const [first, second] = [canonicalHost(one), canonicalHost(other)];
  return first === second || first === "" || second === "";
}

function isIpv4Mapped16(octets: Uint8Array): boolean {
  return octets.length === 16 && isIpv4Mapped(octets);
}
