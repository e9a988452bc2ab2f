/** The cache key: which queries share an answer, and where in the table it is stored. */
import { FOLD } from "../../dns/octets.ts";
import type { Query } from "../../plugin/index.ts";

export const TRAIT_DO = 1;
export const TRAIT_CD = 2;
/** RD is clear: an upstream then answers only from the data that it has. */
export const TRAIT_NO_RD = 4;
/** For a name that does not exist one client may get NXDOMAIN and another one NOERROR (RFC 9824 section 5.1). */
export const TRAIT_COMPACT = 8;

/** The inputs besides the question that select the answer: DO, CD, the absence of RD, and CO, as four bits. */
export function answerTraits(query: Query): number {
  return (
    (query.dnssecOk ? TRAIT_DO : 0) |
    (query.checkingDisabled ? TRAIT_CD : 0) |
    (query.recursionDesired ? 0 : TRAIT_NO_RD) |
    (query.compactOk ? TRAIT_COMPACT : 0)
  );
}

/**
 * A keyed hash of the question, ignoring the case of the name. Clients choose the names: with a hash that they could
 * compute they could put all of theirs in one place of the table. The construction is HalfSipHash (Aumasson and
 * Bernstein) with one round for each word of input and three at the end, which costs no more here than FNV-1a.
 */
export class QuestionHasher {
  readonly #left: number;
  readonly #right: number;

  /** @param left, right two secret numbers of 32 bits */
  constructor(left: number, right: number) {
    this.#left = left | 0;
    this.#right = right | 0;
  }

  /** A signed 32-bit integer. Reads the bytes in place. */
  hash(query: Query, traits: number): number {
    // The bytes are read without a helper: a helper shared with the rest of the program is compiled for every kind of
    // array.
    const { bytes } = query;
    const fold = FOLD;
    // Type and class follow the name and are case-folded with it: some types share a hash, which costs a comparison.
    const end = query.questionEnd;
    const lastWord = 12 + ((end - 12) & ~3);
    const stop = lastWord + 16;
    // "| 0" lets the compiler use 32-bit integers, which is faster.
    let v0 = this.#left | 0;
    let v1 = this.#right | 0;
    let v2 = v0 ^ 0x6c796765;
    let v3 = v1 ^ 0x74656462;
    for (let at = 12; at < stop; at += 4) {
      let word = 0;
      if (at < lastWord) {
        word =
          (fold[bytes[at] ?? 0] ?? 0) |
          ((fold[bytes[at + 1] ?? 0] ?? 0) << 8) |
          ((fold[bytes[at + 2] ?? 0] ?? 0) << 16) |
          ((fold[bytes[at + 3] ?? 0] ?? 0) << 24);
      } else if (at === lastWord) {
        // A name ends in its root octet, so no question is the beginning of another: their lengths need not go in.
        word = traits << 24;
        for (let tail = at; tail < end; tail++) word ^= (fold[bytes[tail] ?? 0] ?? 0) << ((tail & 3) * 8);
      } else if (at === lastWord + 4) {
        v2 ^= 0xff;
      }
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
    return v1 ^ v3;
  }
}
