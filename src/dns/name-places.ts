/**
 * Offsets of names in a message under construction, by hash, as targets of compression pointers. Most messages have fewer than ten.
 */
export class NamePlaces {
  /** Chains of equal low bits: index of a name, plus one. */
  #heads = new Uint16Array(2 * SMALLEST);
  #next = new Uint16Array(SMALLEST);
  #hashes = new Int32Array(SMALLEST);
  #places = new Uint16Array(SMALLEST);
  #size = 0;

  /** The offset added for a hash, -1 for none. */
  find(hash: number): number {
    let name = this.#heads[hash & (this.#heads.length - 1)] as number;
    while (name !== 0 && this.#hashes[name - 1] !== hash) name = this.#next[name - 1] as number;
    return name === 0 ? -1 : (this.#places[name - 1] as number);
  }

  /** Adds an offset for a new hash. It must be above all earlier ones. */
  add(hash: number, place: number): void {
    if (this.#size === this.#hashes.length) this.#grow();
    const head = hash & (this.#heads.length - 1);
    const index = this.#size++;
    this.#hashes[index] = hash;
    this.#places[index] = place;
    this.#next[index] = this.#heads[head] as number;
    this.#heads[head] = index + 1;
  }

  /** Drops all offsets at or above `place`. */
  dropFrom(place: number): void {
    while (this.#size > 0 && (this.#places[this.#size - 1] as number) >= place) {
      const index = --this.#size;
      // The latest offset is the first of its chain.
      this.#heads[(this.#hashes[index] as number) & (this.#heads.length - 1)] = this.#next[index] as number;
    }
  }

  #grow(): void {
    const hashes = this.#hashes;
    const places = this.#places;
    const size = 2 * hashes.length;
    this.#heads = new Uint16Array(2 * size);
    this.#next = new Uint16Array(size);
    this.#hashes = new Int32Array(size);
    this.#places = new Uint16Array(size);
    this.#size = 0;
    for (let index = 0; index < hashes.length; index++)
      this.add(hashes[index] as number, places[index] as number);
  }
}

/** V8 keeps arrays of up to 64 bytes inside of their object. A power of two. */
const SMALLEST = 16;
