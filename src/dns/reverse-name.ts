/** Reverse names of addresses (RFC 1035 section 3.5, RFC 3596 section 2.5). */
import { formatIpv4, formatIpv6, parseIpv4, parseIpv6 } from "../lib/net/ip-address.ts";
import { Name } from "./name.ts";

const IPV4_REVERSE = Name.parse("in-addr.arpa.");
const IPV6_REVERSE = Name.parse("ip6.arpa.");

/** The address of a name below `in-addr.arpa` or `ip6.arpa`, in canonical text; `undefined` for other names. */
export function addressOfReverseName(name: Name): string | undefined {
  if (name.labelCount === 6 && name.isAtOrBelow(IPV4_REVERSE)) {
    const octets = parseIpv4(name.labelsAbove(IPV4_REVERSE).reverse().join("."));
    return octets && formatIpv4(octets);
  }
  if (name.labelCount === 34 && name.isAtOrBelow(IPV6_REVERSE)) {
    const digits = name.labelsAbove(IPV6_REVERSE).reverse().join("");
    const octets = parseIpv6(digits.replace(/(.{4})(?=.)/g, "$1:"));
    return octets && formatIpv6(octets);
  }
  return undefined;
}

/** The reverse name of an IPv4 address of 4 octets. */
export function reverseNameOfIpv4(octets: Uint8Array): Name {
  return Name.fromLabels(Array.from(octets, String).reverse(), IPV4_REVERSE);
}

/** The reverse name of an IPv6 address of 16 octets. */
export function reverseNameOfIpv6(octets: Uint8Array): Name {
  const labels: string[] = [];
  for (const octet of octets) labels.unshift((octet & 15).toString(16), (octet >> 4).toString(16));
  return Name.fromLabels(labels, IPV6_REVERSE);
}
