/** The parts of resolv.conf(5) for name servers and for the search list. */
import { Name } from "../../dns/name.ts";
import { type UpstreamAddress, upstreamAddress } from "./address.ts";

export const DNS_PORT = 53;

/**
 * The addresses of the `nameserver` lines, in order, each with port 53. A comment may directly follow the address. A zone index is
 * kept (`fe80::1%eth0`), but dropped from an IPv4 address, as in CoreDNS. A line without an IP address is skipped, as in the C
 * library.
 */
export function parseNameservers(text: string): UpstreamAddress[] {
  const addresses: UpstreamAddress[] = [];
  for (const line of text.split("\n")) {
    const [keyword, value = ""] = line.trim().split(/\s+/);
    if (keyword !== "nameserver") continue;
    const text = value.replace(/[;#].*$/, "");
    const address = upstreamAddress(text, DNS_PORT) ?? upstreamAddress(withoutZone(text), DNS_PORT);
    if (address !== undefined) addresses.push(address);
  }
  return addresses;
}

/** An IPv4 address without its zone index. */
function withoutZone(text: string): string {
  return text.includes(":") ? text : text.replace(/%.*$/, "");
}

/**
 * The names of the last `search` or `domain` line, in order. Invalid names are skipped, as is the root, which would not change a
 * name.
 */
export function parseSearchList(text: string): Name[] {
  let names: readonly string[] = [];
  for (const line of text.split("\n")) {
    const [keyword, ...words] = line.trim().split(/\s+/);
    if (keyword === "search") names = words;
    else if (keyword === "domain") names = words.slice(0, 1);
  }
  return names.flatMap((word) => Name.tryParse(word) ?? []).filter((name) => !name.isRoot);
}
