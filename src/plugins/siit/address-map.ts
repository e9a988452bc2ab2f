/** Maps IPv6 addresses to IPv4 addresses and back: by a prefix (RFC 6052) and explicit mappings (RFC 7757). */
import { formatIpv4, formatIpv6, isIpv4Mapped, parseIpv4, parseIpv6 } from "../../lib/net/ip-address.ts";
import { type IpPrefix, PrefixSet, parseIpPrefix } from "../../lib/net/prefix-set.ts";

/** RFC 6052 section 2.2. */
const LENGTHS: ReadonlySet<number> = new Set([32, 40, 48, 56, 64, 96]);
/** Bits 64 to 71 are zero, and the octets of the IPv4 address skip them. */
const RESERVED = 8;
/** `::ffff:0:0/96`, which elsewhere means all of IPv4. */
const IPV4_MAPPED: readonly number[] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0];

/** An IPv6 prefix that embeds IPv4 addresses. */
export class TranslationPrefix {
  readonly #octets: Uint8Array;
  /** In octets. */
  readonly #length: number;

  private constructor(octets: Uint8Array, length: number) {
    this.#octets = octets;
    this.#length = length;
  }

  /** @returns why the text is not a valid prefix */
  static parse(text: string): TranslationPrefix | string {
    const prefix = parseIpPrefix(text);
    if (prefix === undefined || !text.includes("/")) return `invalid CIDR address: ${text}`;
    if (prefix.octets.length === 4 && text.includes(":") && prefix.length === 0)
      return new TranslationPrefix(Uint8Array.from(IPV4_MAPPED), 12);
    if (prefix.octets.length === 4) return `invalid netmask 32 IPv6 address: "${text}"`;
    if (!LENGTHS.has(prefix.length))
      return `invalid prefix length "${text}": must be one of /32, /40, /48, /56, /64, /96`;
    if (prefix.octets[RESERVED] !== 0)
      return `invalid prefix "${text}": reserved octet (byte 8) must be zero`;
    return new TranslationPrefix(prefix.octets, prefix.length / 8);
  }

  /** The embedded IPv4 address, `undefined` for an IPv6 address outside the prefix. */
  extract(ipv6: Uint8Array): Uint8Array | undefined {
    for (let index = 0; index < this.#length; index++)
      if (ipv6[index] !== this.#octets[index]) return undefined;
    if (this.#length <= RESERVED && ipv6[RESERVED] !== 0) return undefined;
    return Uint8Array.from([0, 1, 2, 3], (index) => ipv6[this.#place(index)] ?? 0);
  }

  embed(ipv4: Uint8Array): Uint8Array {
    const octets = this.#octets.slice();
    for (let index = 0; index < 4; index++) octets[this.#place(index)] = ipv4[index] ?? 0;
    return octets;
  }

  /** Why no AAAA record that other hosts use can be within the prefix; `undefined` if some can. */
  reasonToBeEmpty(): string | undefined {
    const [first = 0, second = 0] = this.#octets;
    if (first === 0xff) return "multicast addresses";
    if (first === 0xfe && (second & 0xc0) === 0x80) return "link-local addresses";
    if (isIpv4Mapped(this.#octets)) return "IPv4-mapped addresses";
    return undefined;
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

/** One mapping of RFC 7757 section 3.2: the bits after one prefix equal those after the other. */
export interface Mapping {
  readonly ipv4: IpPrefix;
  readonly ipv6: IpPrefix;
}

export class AddressMap {
  readonly prefix: TranslationPrefix;
  readonly #byIpv6 = new PrefixSet<Mapping>();
  readonly #byIpv4 = new PrefixSet<Mapping>();

  /** @param mappings a later mapping replaces an earlier one with the same prefix */
  constructor(prefix: TranslationPrefix, mappings: readonly Mapping[]) {
    this.prefix = prefix;
    for (const mapping of mappings) {
      this.#byIpv6.add(`${formatIpv6(mapping.ipv6.octets)}/${mapping.ipv6.length}`, mapping);
      this.#byIpv4.add(`${formatIpv4(mapping.ipv4.octets)}/${mapping.ipv4.length}`, mapping);
    }
  }

  /** @returns the IPv4 address in text form; mappings take precedence over the prefix (RFC 7757 section 3.3.2) */
  toIpv4(address: string): string | undefined {
    const octets = parseIpv6(address);
    if (octets === undefined || isIpv4Mapped(octets)) return undefined;
    const mapping = this.#byIpv6.lookup(octets);
    const ipv4 =
      mapping === undefined ? this.prefix.extract(octets) : moved(octets, mapping.ipv6, mapping.ipv4);
    return ipv4 && formatIpv4(ipv4);
  }

  /** @returns the octets of the IPv6 address; `undefined` for a text that is not an IPv4 address */
  toIpv6(address: string): Uint8Array | undefined {
    const octets = parseIpv4(address);
    if (octets === undefined) return undefined;
    const mapping = this.#byIpv4.lookup(octets);
    return mapping === undefined ? this.prefix.embed(octets) : moved(octets, mapping.ipv4, mapping.ipv6);
  }
}

/** Moves the bits after one prefix behind the other; excess bits are zero, or left out. */
function moved(octets: Uint8Array, from: IpPrefix, to: IpPrefix): Uint8Array {
  const result = to.octets.slice();
  const count = Math.min(octets.length * 8 - from.length, result.length * 8 - to.length);
  for (let index = 0; index < count; index++) {
    const source = from.length + index;
    if (((octets[source >> 3] ?? 0) & (0x80 >> (source & 7))) === 0) continue;
    const target = to.length + index;
    result[target >> 3] = (result[target >> 3] ?? 0) | (0x80 >> (target & 7));
  }
  return result;
}
