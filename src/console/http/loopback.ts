/** Addresses that only this machine can reach. */
import { parseIpAddress } from "../../lib/net/ip-address.ts";

/** @param host as in a URL: an IPv6 address stands in brackets */
export function isLoopbackHost(host: string): boolean {
  if (host.toLowerCase() === "localhost") return true;
  const octets = parseIpAddress(host.replace(/^\[(.*)\]$/, "$1"));
  if (octets === undefined) return false;
  if (octets.length === 4) return octets[0] === 127;
  return octets.every((octet, index) => octet === (index === 15 ? 1 : 0));
}
