/**
 * A message that arrives in parts. They are copied together, because each part is a view of everything that was read
 * with it, and the peer may send a message octet by octet.
 */
export class GatheredOctets {
  #octets: Uint8Array = new Uint8Array(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Bytes of memory: at most twice its length. */
  get room(): number {
    return this.#octets.length;
  }

  add(part: Uint8Array): void {
    const length = this.#length + part.length;
    if (length > this.#octets.length) {
      const grown = Buffer.allocUnsafe(Math.max(length, 2 * this.#length));
      grown.set(this.octets);
      this.#octets = grown;
    }
    this.#octets.set(part, this.#length);
    this.#length = length;
  }

  /** The octets received so far. */
  get octets(): Uint8Array {
    return this.#octets.subarray(0, this.#length);
  }
}
