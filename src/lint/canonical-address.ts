import { parseIpAddress } from "../lib/net/ip-address.ts";

/** The address bytes in hexadecimal, equal for all spellings; without zone index. */
export function canonicalAddress(address: string): string | undefined {
  const octets = parseIpAddress(address.replace(/%.*$/, ""));
  return octets === undefined ? undefined : Buffer.from(octets).toString("hex");
}
