/**
 * A message that comes in parts. They are copied together: a part is a view of all that was read with it, and the other side may send a
 * message octet by octet.
 */
export class GatheredOctets {
  #octets: Uint8Array = new Uint8Array(0);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Octets of memory that it takes: at most twice its length. */
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

  /** What has come. */
  get octets(): Uint8Array {
    return this.#octets.subarray(0, this.#length);
  }
}
