/** Random numbers that come again for the same seed, so that a failure can be repeated. */
export class SeededRandom {
  readonly seed: number;
  #state: number;

  /** `seed`: a 32-bit number; taken from the clock's mercy unless given. */
  constructor(seed: number = Math.floor(Math.random() * 2 ** 32)) {
    this.seed = seed >>> 0;
    // Zero would stay zero for ever.
    this.#state = this.seed === 0 ? 0x9e3779b9 : this.seed;
  }

  /** A 32-bit number: xorshift32 (Marsaglia 2003). */
  next(): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x >>> 0;
    return this.#state;
  }

  /** A whole number from 0 to `limit` - 1. */
  below(limit: number): number {
    return this.next() % limit;
  }

  /** One of them; there has to be one. */
  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new RangeError("nothing to pick from");
    return item;
  }

  fill(octets: Uint8Array): void {
    for (let at = 0; at < octets.length; at++) octets[at] = this.next() >>> 13;
  }
}
