/** The hashes of a zone's names (RFC 5155 section 5), side by side in octets: a large zone has as many as it has names. */
import type { Name } from "../dns/name.ts";
import { nodeCrypto } from "../lib/node-modules.ts";
import { sortInPortions } from "./portioned-sort.ts";

/** Octets of SHA-1. */
const HASH = 20;

export class HashedNames {
  #octets: Buffer;
  #nodes: Int32Array<ArrayBuffer>;
  #count = 0;

  /** @param capacity as many as are likely; more find room as well */
  constructor(capacity: number) {
    this.#octets = Buffer.alloc(capacity * HASH);
    this.#nodes = new Int32Array(capacity);
  }

  get count(): number {
    return this.#count;
  }

  /** One hash, without salt (RFC 9276 section 3.1). */
  add(name: Name, node: number): void {
    if (this.#count === this.#nodes.length) this.#grow();
    nodeCrypto()
      .createHash("sha1")
      .update(name.folded)
      .digest()
      .copy(this.#octets, this.#count * HASH);
    this.#nodes[this.#count++] = node;
  }

  /** The numbers of all hashes, in the order of the hashes. */
  sorted(pause: () => Promise<void>): Promise<Int32Array<ArrayBuffer>> {
    const numbers = Int32Array.from({ length: this.#count }, (_, index) => index);
    const octets = this.#octets;
    const compare = (one: number, other: number): number =>
      octets.compare(octets, other * HASH, other * HASH + HASH, one * HASH, one * HASH + HASH);
    return sortInPortions(numbers, compare, pause);
  }

  /** A view. */
  hash(number: number): Buffer {
    return this.#octets.subarray(number * HASH, number * HASH + HASH);
  }

  node(number: number): number {
    return this.#nodes[number] as number;
  }

  #grow(): void {
    const octets = Buffer.alloc(2 * this.#octets.length + HASH);
    this.#octets.copy(octets);
    this.#octets = octets;
    const nodes = new Int32Array(octets.length / HASH);
    nodes.set(this.#nodes);
    this.#nodes = nodes;
  }
}
