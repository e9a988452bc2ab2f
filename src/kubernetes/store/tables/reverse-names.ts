/** `1.0.96.10.in-addr.arpa` and the like -> addresses, and back. */
import { Name } from "../../../dns/name.ts";
import { octetAt } from "../../../dns/octets.ts";
import { type AddressKey, addressOfKey } from "../../objects/addresses.ts";
import type { AddressPrefix } from "./address-prefixes.ts";

const IPV4_ROOT = Name.parse("in-addr.arpa.");
const IPV6_ROOT = Name.parse("ip6.arpa.");

const DIGIT_ZERO = 0x30;

/** The address that a complete reverse name stands for (docs/spec/kubernetes-dns.md#reverse-cluster-address and docs/spec/kubernetes-dns.md#reverse-ipv6); undefined for any other name. */
export function addressOfReverseName(name: Name): AddressKey | undefined {
  if (name.labelCount === 6 && name.isAtOrBelow(IPV4_ROOT)) return readIpv4(name.folded);
  if (name.labelCount === 34 && name.isAtOrBelow(IPV6_ROOT)) return readIpv6(name.folded);
  return undefined;
}

/** The beginning of addresses that a reverse name of fewer labels stands for; undefined for any other name. */
export function prefixOfReverseName(name: Name): AddressPrefix | undefined {
  if (name.isBelow(IPV4_ROOT)) {
    const count = name.labelCount - IPV4_ROOT.labelCount;
    return count < 4 ? ipv4Prefix(name.folded, count) : undefined;
  }
  if (!name.isBelow(IPV6_ROOT)) return undefined;
  const count = name.labelCount - IPV6_ROOT.labelCount;
  return count < 32 ? ipv6Prefix(name.folded, count) : undefined;
}

/** `4.3.2.1.in-addr.arpa.` or its relative of 32 nibbles (RFC 1035 section 3.5, RFC 3596 section 2.5). */
export function reverseName(key: AddressKey): Name {
  if (typeof key === "number") return reverseNameOfIpv4(key);
  const octets = [...addressOfKey(key)].reverse();
  const nibbles = octets.flatMap((octet) => [octet & 0xf, octet >>> 4]);
  return Name.parse(`${nibbles.map((nibble) => nibble.toString(16)).join(".")}.ip6.arpa.`);
}

/** Without a text in between: each change of an endpoint asks for one. */
function reverseNameOfIpv4(key: number): Name {
  const { wire: root } = IPV4_ROOT;
  let length = root.length;
  for (let shift = 0; shift < 32; shift += 8) length += 1 + digitsOf((key >>> shift) & 0xff);
  const wire = new Uint8Array(length);
  let at = 0;
  for (let shift = 0; shift < 32; shift += 8) {
    let rest = (key >>> shift) & 0xff;
    const digits = digitsOf(rest);
    wire[at] = digits;
    for (let digit = digits; digit > 0; digit--) {
      wire[at + digit] = DIGIT_ZERO + (rest % 10);
      rest = (rest - (rest % 10)) / 10;
    }
    at += digits + 1;
  }
  for (let from = 0; from < root.length; from++) wire[at + from] = octetAt(root, from);
  return Name.fromCheckedWire(wire);
}

function digitsOf(octet: number): number {
  return octet > 99 ? 3 : octet > 9 ? 2 : 1;
}

function readIpv4(wire: Uint8Array): AddressKey | undefined {
  return readOctets(wire, 4);
}

function ipv4Prefix(wire: Uint8Array, count: number): AddressPrefix | undefined {
  const octets = readOctets(wire, count);
  if (octets === undefined) return undefined;
  return { isIpv4: true, bits: 8 * count, high: (octets << (8 * (4 - count))) | 0, low: 0 };
}

/** The last octet comes first. */
function readOctets(wire: Uint8Array, count: number): number | undefined {
  let key = 0;
  let at = 0;
  for (let part = 0; part < count; part++) {
    const length = octetAt(wire, at);
    if (length > 3 || (length > 1 && octetAt(wire, at + 1) === DIGIT_ZERO)) return undefined;
    let value = 0;
    for (let index = at + 1; index <= at + length; index++) {
      const digit = octetAt(wire, index) - DIGIT_ZERO;
      if (digit < 0 || digit > 9) return undefined;
      value = value * 10 + digit;
    }
    if (value > 255) return undefined;
    key |= value << (8 * part);
    at += length + 1;
  }
  return key;
}

function ipv6Prefix(wire: Uint8Array, count: number): AddressPrefix | undefined {
  let high = 0;
  let low = 0;
  for (let label = 0; label < count; label++) {
    const nibble = nibbleAt(wire, 2 * label);
    if (nibble === -1) return undefined;
    // The first nibble of the address comes last.
    const place = count - 1 - label;
    if (place < 8) high |= nibble << (28 - 4 * place);
    else if (place < 16) low |= nibble << (60 - 4 * place);
  }
  return { isIpv4: false, bits: 4 * count, high, low };
}

function readIpv6(wire: Uint8Array): AddressKey | undefined {
  let key = "";
  // The first octet of the address comes last.
  for (let pair = 15; pair >= 0; pair--) {
    const low = nibbleAt(wire, pair * 4);
    const high = nibbleAt(wire, pair * 4 + 2);
    if (low === -1 || high === -1) return undefined;
    key += String.fromCharCode((high << 4) | low);
  }
  return key;
}

/** The value of a label of one hexadecimal digit; -1 for any other label. */
function nibbleAt(wire: Uint8Array, at: number): number {
  if (octetAt(wire, at) !== 1) return -1;
  const code = octetAt(wire, at + 1);
  if (code >= DIGIT_ZERO && code <= 0x39) return code - DIGIT_ZERO;
  return code >= 0x61 && code <= 0x66 ? code - 0x61 + 10 : -1;
}
