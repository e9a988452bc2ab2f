/** The hashes of a zone's names (RFC 5155 section 5), packed into one array, because a large zone has one per name. */
import { hash } from "node:crypto";
import type { Name } from "../../dns/name.ts";
import { sortInPortions } from "./portioned-sort.ts";

/** Bytes of a SHA-1 digest. */
export const SHA1_OCTETS = 20;

export class HashedNames {
  #octets: Buffer;
  #nodes: Int32Array<ArrayBuffer>;
  #count = 0;

  /** @param capacity expected number; grows if needed */
  constructor(capacity: number) {
    this.#octets = Buffer.alloc(capacity * SHA1_OCTETS);
    this.#nodes = new Int32Array(capacity);
  }

  get count(): number {
    return this.#count;
  }

  /** One hash, without salt (RFC 9276 section 3.1). */
  add(name: Name, node: number): void {
    if (this.#count === this.#nodes.length) this.#grow();
    this.#octets.set(hash("sha1", name.folded, "buffer"), this.#count * SHA1_OCTETS);
    this.#nodes[this.#count++] = node;
  }

  /** The numbers of all hashes, sorted by hash. */
  sorted(pause: () => Promise<void>): Promise<Int32Array<ArrayBuffer>> {
    const numbers = new Int32Array(this.#count);
    for (let index = 0; index < numbers.length; index++) numbers[index] = index;
    const octets = this.#octets;
    const compare = (one: number, other: number): number =>
      octets.compare(
        octets,
        other * SHA1_OCTETS,
        other * SHA1_OCTETS + SHA1_OCTETS,
        one * SHA1_OCTETS,
        one * SHA1_OCTETS + SHA1_OCTETS,
      );
    return sortInPortions(numbers, compare, pause);
  }

  /** A view. */
  hash(number: number): Buffer {
    return this.#octets.subarray(number * SHA1_OCTETS, number * SHA1_OCTETS + SHA1_OCTETS);
  }

  node(number: number): number {
    return this.#nodes[number] as number;
  }

  #grow(): void {
    const octets = Buffer.alloc(2 * this.#octets.length + SHA1_OCTETS);
    this.#octets.copy(octets);
    this.#octets = octets;
    const nodes = new Int32Array(octets.length / SHA1_OCTETS);
    nodes.set(this.#nodes);
    this.#nodes = nodes;
  }
}
