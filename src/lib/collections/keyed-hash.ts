const FINAL_ROUNDS = 3;

/**
 * A keyed hash of a few 32-bit words, of 64 bits, that creates no object. Clients choose their addresses and names: with a hash that they
 * could compute, they could put all of theirs in one place of a table. The construction is HalfSipHash (Aumasson and Bernstein) with one
 * round for each word and three at the end.
 */
export class KeyedHash {
  /** The result of the last {@link finish}: two signed 32-bit integers. */
  low = 0;
  high = 0;
  readonly #left: number;
  readonly #right: number;
  #v0 = 0;
  #v1 = 0;
  #v2 = 0;
  #v3 = 0;

  /** @param left, right two secret numbers of 32 bits */
  constructor(left: number, right: number) {
    this.#left = left | 0;
    this.#right = right | 0;
  }

  /** A hash of the first words of an array, in one go. Differs from that of {@link start}. */
  ofWords(domain: number, words: Int32Array, count: number): void {
    let v0 = this.#left;
    let v1 = this.#right;
    let v2 = v0 ^ 0x6c796765;
    let v3 = v1 ^ 0x74656462;
    const last = count + FINAL_ROUNDS;
    for (let round = -1; round < last; round++) {
      if (round === count) v2 ^= 0xff;
      const word = round < 0 ? domain : round < count ? (words[round] as number) : 0;
      v3 ^= word;
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
      v0 ^= word;
    }
    this.low = v1 ^ v3;
    this.high = v0 ^ v2;
  }

  /** Begins another hash. @param domain sets hashes of different things apart */
  start(domain: number): void {
    this.#v0 = this.#left;
    this.#v1 = this.#right;
    this.#v2 = this.#left ^ 0x6c796765;
    this.#v3 = this.#right ^ 0x74656462;
    this.add(domain);
  }

  add(word: number): void {
    let v0 = this.#v0;
    let v1 = this.#v1;
    let v2 = this.#v2;
    let v3 = this.#v3 ^ word;
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    this.#v0 = v0 ^ word;
    this.#v1 = v1;
    this.#v2 = v2;
    this.#v3 = v3;
  }

  /** Adds the characters of a text. */
  addText(text: string): void {
    for (let at = 0; at < text.length; at++) this.add(text.charCodeAt(at));
    this.add(text.length);
  }

  /** Sets {@link low} and {@link high}. */
  finish(): void {
    this.#v2 ^= 0xee;
    this.add(0);
    this.add(0);
    this.add(0);
    this.low = this.#v1 ^ this.#v3;
    this.high = this.#v0 ^ this.#v2;
  }
}
