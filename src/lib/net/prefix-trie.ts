/**
 * Address prefixes of one family with a number each, as a path-compressed binary trie in one typed array, which the
 * garbage collector does not scan. A lookup visits about log2(size) nodes and allocates nothing.
 */

/** The result of a lookup without a covering prefix, and the value of a node without one. */
export const NO_PREFIX = -1;

/** The words of a node: these four, then its prefix. A node takes one or two cache lines. */
const LENGTH = 0;
const VALUE = 1;
const ZERO_CHILD = 2;
const FIXED = 4;

const FIRST_CAPACITY = 16;

export class PrefixTrie {
  /** 32-bit words of an address: 1 for IPv4, 4 for IPv6. */
  readonly #words: number;
  readonly #bits: number;
  /** Elements of the array per node; a node is the index of its first one. */
  readonly #stride: number;
  #nodes: Int32Array;
  #end = 0;
  #root = NO_PREFIX;
  /** The address of the current lookup, so that a lookup allocates nothing. */
  readonly #address: Int32Array;

  constructor(family: 4 | 6) {
    this.#words = family === 4 ? 1 : 4;
    this.#bits = 32 * this.#words;
    this.#stride = FIXED + this.#words;
    this.#nodes = new Int32Array(FIRST_CAPACITY * this.#stride);
    this.#address = new Int32Array(this.#words);
  }

  /** Memory in bytes. */
  get octets(): number {
    return this.#nodes.byteLength;
  }

  /**
   * The node of a prefix, created if missing; it has no value before {@link setValue}.
   * @param octets 4 or 16, the bits past `length` zero
   */
  node(octets: Uint8Array, length: number): number {
    this.#read(octets, 0);
    let parent = NO_PREFIX;
    let node = this.#root;
    while (node !== NO_PREFIX) {
      const nodeLength = this.length(node);
      const common = this.#commonBits(node, Math.min(nodeLength, length));
      if (common < nodeLength) return this.#split(parent, node, common, length);
      if (nodeLength === length) return node;
      parent = node;
      node = this.#nodes[node + ZERO_CHILD + this.#bit(nodeLength)] as number;
    }
    const leaf = this.#add(length);
    this.#attach(parent, leaf);
    return leaf;
  }

  value(node: number): number {
    return this.#nodes[node + VALUE] as number;
  }

  /** @param value 0 or more */
  setValue(node: number, value: number): void {
    this.#nodes[node + VALUE] = value;
  }

  /** The number of bits of a node's prefix. */
  length(node: number): number {
    return this.#nodes[node + LENGTH] as number;
  }

  /** The value of the longest prefix that covers the address whose octets begin at `offset`; {@link NO_PREFIX} if none does. */
  longest(octets: Uint8Array, offset: number): number {
    return this.#valueOf(this.#find(octets, offset, false));
  }

  /** The smallest value of all prefixes that cover the address; {@link NO_PREFIX} if none does. */
  least(octets: Uint8Array, offset: number): number {
    return this.#valueOf(this.#find(octets, offset, true));
  }

  /** Like {@link least}, returns the node. */
  leastNode(octets: Uint8Array, offset: number): number {
    return this.#find(octets, offset, true);
  }

  #valueOf(node: number): number {
    return node === NO_PREFIX ? NO_PREFIX : this.value(node);
  }

  #find(octets: Uint8Array, offset: number, least: boolean): number {
    this.#read(octets, offset);
    const nodes = this.#nodes;
    const address = this.#address;
    let found = NO_PREFIX;
    let foundValue = NO_PREFIX;
    let node = this.#root;
    while (node !== NO_PREFIX) {
      const length = nodes[node + LENGTH] as number;
      if (this.#commonBits(node, length) < length) break;
      const value = nodes[node + VALUE] as number;
      if (value !== NO_PREFIX && (found === NO_PREFIX || !least || value <= foundValue)) {
        found = node;
        foundValue = value;
      }
      if (length === this.#bits) break;
      const bit = ((address[length >>> 5] as number) >>> (31 - (length & 31))) & 1;
      node = nodes[node + ZERO_CHILD + bit] as number;
    }
    return found;
  }

  #read(octets: Uint8Array, offset: number): void {
    for (let word = 0; word < this.#words; word++) {
      const at = offset + 4 * word;
      this.#address[word] =
        ((octets[at] as number) << 24) |
        ((octets[at + 1] as number) << 16) |
        ((octets[at + 2] as number) << 8) |
        (octets[at + 3] as number);
    }
  }

  /** One bit of the current address. */
  #bit(position: number): number {
    return ((this.#address[position >>> 5] as number) >>> (31 - (position & 31))) & 1;
  }

  /** The number of leading bits that the node's prefix and the current address have in common, at most `limit`. */
  #commonBits(node: number, limit: number): number {
    const base = node + FIXED;
    for (let word = 0; word << 5 < limit; word++) {
      const difference = (this.#nodes[base + word] as number) ^ (this.#address[word] as number);
      if (difference !== 0) return Math.min(limit, (word << 5) + Math.clz32(difference));
    }
    return limit;
  }

  /** Inserts the current prefix of `length` bits where it diverges from `node`. */
  #split(parent: number, node: number, common: number, length: number): number {
    const leaf = this.#add(length);
    const upper = common === length ? leaf : this.#add(common);
    this.#attach(parent, upper);
    const nodeWord = this.#nodes[node + FIXED + (common >>> 5)] as number;
    const nodeBit = (nodeWord >>> (31 - (common & 31))) & 1;
    this.#nodes[upper + ZERO_CHILD + nodeBit] = node;
    if (upper !== leaf) this.#nodes[upper + ZERO_CHILD + 1 - nodeBit] = leaf;
    return leaf;
  }

  #attach(parent: number, node: number): void {
    if (parent === NO_PREFIX) this.#root = node;
    else this.#nodes[parent + ZERO_CHILD + this.#bit(this.length(parent))] = node;
  }

  /** A node without value and children, whose prefix is the first bits of the current address. */
  #add(length: number): number {
    const node = this.#end;
    if (node + this.#stride > this.#nodes.length) {
      const larger = new Int32Array(2 * this.#nodes.length);
      larger.set(this.#nodes);
      this.#nodes = larger;
    }
    this.#end += this.#stride;
    this.#nodes[node + LENGTH] = length;
    this.#nodes[node + VALUE] = NO_PREFIX;
    this.#nodes[node + ZERO_CHILD] = NO_PREFIX;
    this.#nodes[node + ZERO_CHILD + 1] = NO_PREFIX;
    for (let word = 0; word < this.#words; word++) {
      const kept = Math.min(32, Math.max(0, length - 32 * word));
      this.#nodes[node + FIXED + word] =
        kept === 0 ? 0 : (this.#address[word] as number) & (-1 << (32 - kept));
    }
    return node;
  }
}
