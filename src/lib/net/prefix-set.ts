import { isIpv4Mapped, parseIpAddress } from "./ip-address.ts";
import { NO_PREFIX, PrefixTrie } from "./prefix-trie.ts";

/** The leading bits that the addresses of a range have in common. */
export interface IpPrefix {
  /** 4 or 16 octets in network order; the bits past `length` are zero. */
  readonly octets: Uint8Array;
  /** How many bits count: 0 to 32, or 0 to 128. */
  readonly length: number;
}

/** A text that is neither an address nor an address with a prefix length. */
export class IpPrefixError extends Error {
  readonly text: string;

  constructor(text: string) {
    super(`${JSON.stringify(text)} is not an IP address or a prefix such as 192.0.2.0/24 or 2001:db8::/32`);
    this.name = "IpPrefixError";
    this.text = text;
  }
}

/**
 * Address ranges with a value each; a lookup finds the longest prefix that covers an address.
 *
 * IPv4-mapped addresses (`::ffff:192.0.2.1`) count as IPv4 addresses, in prefixes and in lookups, as in Go's `net`
 * package.
 */
export class PrefixSet<Value> {
  readonly #ipv4 = new PrefixTrie(4);
  readonly #ipv6 = new PrefixTrie(6);
  readonly #values: Value[] = [];

  /** How many different prefixes there are. */
  get size(): number {
    return this.#values.length;
  }

  /**
   * Adds a prefix, or replaces its value.
   *
   * @param cidr as {@link parseIpPrefix} takes it.
   * @throws IpPrefixError
   */
  add(cidr: string, value: Value): void {
    const prefix = parseIpPrefix(cidr);
    if (prefix === undefined) throw new IpPrefixError(cidr);
    const trie = prefix.octets.length === 4 ? this.#ipv4 : this.#ipv6;
    const node = trie.node(prefix.octets, prefix.length);
    const known = trie.value(node);
    if (known !== NO_PREFIX) {
      this.#values[known] = value;
      return;
    }
    trie.setValue(node, this.#values.length);
    this.#values.push(value);
  }

  /** The value of the longest prefix that covers an address of 4 or 16 octets; undefined if none does. */
  lookup(octets: Uint8Array): Value | undefined {
    if (octets.length !== 4 && octets.length !== 16) return undefined;
    const found =
      octets.length === 4
        ? this.#ipv4.longest(octets, 0)
        : isIpv4Mapped(octets)
          ? this.#ipv4.longest(octets, 12)
          : this.#ipv6.longest(octets, 0);
    return found === NO_PREFIX ? undefined : this.#values[found];
  }
}

/**
 * Reads `192.0.2.0/24`, `2001:db8::/32`, or an address alone, which is a prefix of full length. Bits past the
 * length are cleared. Undefined if the text is neither.
 */
export function parseIpPrefix(text: string): IpPrefix | undefined {
  const slash = text.indexOf("/");
  let octets = parseIpAddress(slash === -1 ? text : text.slice(0, slash));
  if (octets === undefined) return undefined;
  let length = octets.length * 8;
  if (slash !== -1) {
    // Leading zeros are accepted, as in Go.
    if (!/^[0-9]+$/.test(text.slice(slash + 1))) return undefined;
    const given = Number(text.slice(slash + 1));
    if (given > length) return undefined;
    length = given;
  }
  if (octets.length === 16 && length >= 96 && isIpv4Mapped(octets)) {
    octets = octets.subarray(12);
    length -= 96;
  }
  for (let bit = length; bit < octets.length * 8; bit++) {
    octets[bit >> 3] = (octets[bit >> 3] ?? 0) & ~(0x80 >> (bit & 7));
  }
  return { octets, length };
}
