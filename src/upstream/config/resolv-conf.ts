/** The parts of resolv.conf(5) that say whom to ask, and what to append to names. */
import { Name } from "../../dns/name.ts";
import { type UpstreamAddress, upstreamAddress } from "./address.ts";

export const DNS_PORT = 53;

/**
 * The addresses of the `nameserver` lines, in order, each with port 53. A comment may stand right behind the address. A zone index is kept
 * (`fe80::1%eth0`), but dropped from an IPv4 address, which has none, as in CoreDNS. A line without an IP address is skipped, as the resolver of
 * the C library does.
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
 * The names of the last `search` or `domain` line, in order. A word that is no name is skipped, as is the root: a name to which it
 * is appended is the name as it stands.
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
