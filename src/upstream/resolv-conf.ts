/** The part of resolv.conf(5) that says whom to ask. */
import { type UpstreamAddress, upstreamAddress } from "./address.ts";

export const DNS_PORT = 53;

/**
 * The addresses of the `nameserver` lines, in order, each with port 53. A zone index (`fe80::1%eth0`) is kept; a line
 * without an IP address is passed over, as the resolver of the C library does.
 */
export function parseNameservers(text: string): UpstreamAddress[] {
  const addresses: UpstreamAddress[] = [];
  for (const line of text.split("\n")) {
    const [keyword, value] = line.trim().split(/\s+/);
    if (keyword !== "nameserver" || value === undefined) continue;
    const address = upstreamAddress(value, DNS_PORT);
    if (address !== undefined) addresses.push(address);
  }
  return addresses;
}
