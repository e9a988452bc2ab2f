/** IPv4 addresses embedded in IPv6 addresses (RFC 6052 section 2). */
import { formatIpv6, parseIpv4, parseIpv6 } from "../../lib/net/ip-address.ts";
import { parseIpPrefix } from "../../lib/net/prefix-set.ts";

/** Bits 64 to 71 are skipped: the octets of the IPv4 address go around them. */
const RESERVED = 8;

export class Nat64Prefix {
  readonly #octets: Uint8Array;
  /** In octets. */
  readonly #length: number;

  private constructor(octets: Uint8Array, length: number) {
    this.#octets = octets;
    this.#length = length;
  }

  /** @returns why the text is not a valid prefix */
  static parse(text: string): Nat64Prefix | string {
    const prefix = parseIpPrefix(text);
    if (prefix === undefined || !text.includes("/")) return `invalid CIDR address: ${text}`;
    const { octets, length } = prefix;
    if (octets.length === 4) return `invalid netmask 32 IPv6 address: "${text}"`;
    if (length < 32 || length > 96 || length % 8 !== 0)
      return `invalid prefix length "${formatIpv6(octets)}/${length}"`;
    return new Nat64Prefix(octets, length / 8);
  }

  /** @throws RangeError for an invalid prefix */
  static of(text: string): Nat64Prefix {
    const prefix = Nat64Prefix.parse(text);
    if (typeof prefix === "string") throw new RangeError(prefix);
    return prefix;
  }

  /** @param address IPv4 address as text */
  embed(address: string): string | undefined {
    const ipv4 = parseIpv4(address);
    if (ipv4 === undefined) return undefined;
    const octets = this.#octets.slice();
    for (let index = 0; index < 4; index++) octets[this.#place(index)] = ipv4[index] ?? 0;
    return formatIpv6(octets);
  }

  /** The four octets of the embedded IPv4 address, `undefined` for an IPv6 address outside the prefix. */
  extract(address: string): Uint8Array | undefined {
    const octets = parseIpv6(address);
    if (octets === undefined) return undefined;
    const ipv4 = Uint8Array.from([0, 1, 2, 3], (index) => octets[this.#place(index)] ?? 0);
    return this.embed(ipv4.join(".")) === formatIpv6(octets) ? ipv4 : undefined;
  }

  toString(): string {
    return `${formatIpv6(this.#octets)}/${this.#length * 8}`;
  }

  /** The index of an octet of the IPv4 address. */
  #place(index: number): number {
    const at = this.#length + index;
    return this.#length <= RESERVED && at >= RESERVED ? at + 1 : at;
  }
}
