import { isIpv4Mapped, parseIpAddress } from "./ip-address.ts";

/** The leading bits that a range of addresses has in common. */
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
 * Ranges of addresses with a value each; asked for an address, the set answers from the longest prefix that covers it.
 *
 * IPv4-mapped addresses (`::ffff:192.0.2.1`) count as the IPv4 addresses that they are, in prefixes and in lookups,
 * as in Go's `net` package. A path-compressed binary trie for each family: a lookup visits at most one node a bit,
 * about log2(size) of them in practice, and allocates nothing.
 */
export class PrefixSet<Value> {
  #ipv4: PrefixNode<Value> | undefined;
  #ipv6: PrefixNode<Value> | undefined;
  #size = 0;

  /** How many different prefixes there are. */
  get size(): number {
    return this.#size;
  }

  /**
   * Adds a prefix, or gives a new value to one that is there.
   *
   * @param cidr as {@link parseIpPrefix} takes it.
   * @throws IpPrefixError
   */
  add(cidr: string, value: Value): void {
    const prefix = parseIpPrefix(cidr);
    if (prefix === undefined) throw new IpPrefixError(cidr);
    const leaf = new PrefixNode<Value>(prefix.octets, prefix.length);
    if (prefix.octets.length === 4) {
      this.#ipv4 = this.#insert(this.#ipv4, leaf, value);
    } else {
      this.#ipv6 = this.#insert(this.#ipv6, leaf, value);
    }
  }

  /** The value of the longest prefix that covers an address of 4 or 16 octets; undefined if none does. */
  lookup(octets: Uint8Array): Value | undefined {
    if (octets.length === 4) return find(this.#ipv4, octets, 0);
    if (octets.length !== 16) return undefined;
    return isIpv4Mapped(octets) ? find(this.#ipv4, octets, 12) : find(this.#ipv6, octets, 0);
  }

  #insert(node: PrefixNode<Value> | undefined, leaf: PrefixNode<Value>, value: Value): PrefixNode<Value> {
    if (node === undefined) {
      this.#settle(leaf, value);
      return leaf;
    }
    const common = commonBits(node.octets, leaf.octets, Math.min(node.length, leaf.length));
    if (common < node.length) {
      const parent = common === leaf.length ? leaf : new PrefixNode<Value>(node.octets, common);
      parent.setChild(node.octets, node);
      if (parent !== leaf) parent.setChild(leaf.octets, leaf);
      this.#settle(leaf, value);
      return parent;
    }
    if (common === leaf.length) this.#settle(node, value);
    else node.setChild(leaf.octets, this.#insert(node.child(leaf.octets, 0), leaf, value));
    return node;
  }

  #settle(node: PrefixNode<Value>, value: Value): void {
    if (!node.present) this.#size++;
    node.present = true;
    node.value = value;
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
    // Leading zeros are let through, as Go lets them.
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

class PrefixNode<Value> {
  readonly octets: Uint8Array;
  readonly length: number;
  /** A node where two prefixes part has no value of its own. */
  present = false;
  value: Value | undefined = undefined;
  #zero: PrefixNode<Value> | undefined = undefined;
  #one: PrefixNode<Value> | undefined = undefined;

  constructor(octets: Uint8Array, length: number) {
    this.octets = octets;
    this.length = length;
  }

  /** The subtree in which an address goes on after this node's bits. */
  child(octets: Uint8Array, offset: number): PrefixNode<Value> | undefined {
    return bitAt(octets, offset, this.length) === 0 ? this.#zero : this.#one;
  }

  setChild(octets: Uint8Array, child: PrefixNode<Value>): void {
    if (bitAt(octets, 0, this.length) === 0) this.#zero = child;
    else this.#one = child;
  }
}

function find<Value>(
  root: PrefixNode<Value> | undefined,
  octets: Uint8Array,
  offset: number,
): Value | undefined {
  let best: Value | undefined;
  let matched = 0;
  let node = root;
  while (node !== undefined && covers(node.octets, node.length, octets, offset, matched)) {
    if (node.present) best = node.value;
    matched = node.length;
    node = matched === node.octets.length * 8 ? undefined : node.child(octets, offset);
  }
  return best;
}

/** Whether the first `length` bits are equal, given that the first `matched` are. */
function covers(
  prefix: Uint8Array,
  length: number,
  octets: Uint8Array,
  offset: number,
  matched: number,
): boolean {
  const whole = length >> 3;
  for (let index = matched >> 3; index < whole; index++) {
    if (prefix[index] !== octets[offset + index]) return false;
  }
  const rest = length & 7;
  return rest === 0 || ((prefix[whole] ?? 0) ^ (octets[offset + whole] ?? 0)) >> (8 - rest) === 0;
}

function commonBits(one: Uint8Array, other: Uint8Array, limit: number): number {
  for (let index = 0; index * 8 < limit; index++) {
    const difference = (one[index] ?? 0) ^ (other[index] ?? 0);
    if (difference !== 0) return Math.min(limit, index * 8 + Math.clz32(difference) - 24);
  }
  return limit;
}

function bitAt(octets: Uint8Array, offset: number, bit: number): number {
  return ((octets[offset + (bit >> 3)] ?? 0) >> (7 - (bit & 7))) & 1;
}
