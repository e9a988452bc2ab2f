/**
 * A set of names in memory of fixed size (a Bloom filter): added names are always found, and other names rarely. When
 * it is half full, it accepts no more.
 */

const BITS = 2 ** 25;
const MOST_SET = BITS / 2;
const HASHES = 4;
/** FNV-1a, with two offset bases. */
const FIRST_BASIS = 0x811c9dc5;
const SECOND_BASIS = 0x050c5d1f;
const PRIME = 0x01000193;

export class DistinctNames {
  #octets: Uint8Array | undefined;
  #set = 0;

  add(name: string): void {
    if (this.#set >= MOST_SET) return;
    // Allocated on demand.
    this.#octets ??= new Uint8Array(BITS / 8);
    const octets = this.#octets;
    let bit = hashText(name, FIRST_BASIS);
    const step = hashText(name, SECOND_BASIS) | 1;
    for (let n = 0; n < HASHES; n++) {
      const at = (bit >>> 0) % BITS;
      const before = octets[at >>> 3] ?? 0;
      const after = before | (1 << (at & 7));
      if (after !== before) {
        octets[at >>> 3] = after;
        this.#set++;
      }
      bit += step;
    }
  }

  has(name: string): boolean {
    const octets = this.#octets;
    if (octets === undefined) return false;
    let bit = hashText(name, FIRST_BASIS);
    const step = hashText(name, SECOND_BASIS) | 1;
    for (let n = 0; n < HASHES; n++) {
      const at = (bit >>> 0) % BITS;
      if (((octets[at >>> 3] ?? 0) & (1 << (at & 7))) === 0) return false;
      bit += step;
    }
    return true;
  }
}

/** @returns 32 bits, as a signed number */
export function hashText(text: string, basis: number = FIRST_BASIS): number {
  let hash = basis;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), PRIME);
  // The last letters have hardly changed the high bits.
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return hash ^ (hash >>> 13);
}
