/**
 * SHA-1 (FIPS 180-4 section 6.1) of short messages, needed for every NSEC3 denial (RFC 5155 section 5). Node's own needs an object,
 * a call into C++ and a buffer for each digest, which costs several times as much as the hash itself.
 */
import { octetAt } from "../../dns/octets.ts";

/** Bytes of a digest. */
export const SHA1_OCTETS = 20;
/** Bytes of the longest message: a name and a salt. */
const MOST_OCTETS = 512;
const BLOCK = 64;

export class Sha1 {
  /** The caller writes the message here. */
  readonly message: Uint8Array = new Uint8Array(MOST_OCTETS + BLOCK + 9);
  readonly digest: Uint8Array = new Uint8Array(SHA1_OCTETS);
  readonly #words = new Int32Array(80);
  readonly #state = new Int32Array(5);

  /** Hashes the first `length` bytes of the message into {@link digest}. */
  hash(length: number): void {
    const { message } = this;
    const state = this.#state;
    state[0] = 0x67452301;
    state[1] = 0xefcdab89 | 0;
    state[2] = 0x98badcfe | 0;
    state[3] = 0x10325476;
    state[4] = 0xc3d2e1f0 | 0;
    const end = Math.ceil((length + 9) / BLOCK) * BLOCK;
    message[length] = 0x80;
    message.fill(0, length + 1, end);
    message[end - 2] = (length << 3) >>> 8;
    message[end - 1] = length << 3;
    for (let at = 0; at < end; at += BLOCK) this.#block(at);
    const { digest } = this;
    for (let index = 0; index < 5; index++) {
      const word = state[index] as number;
      digest[4 * index] = word >>> 24;
      digest[4 * index + 1] = word >>> 16;
      digest[4 * index + 2] = word >>> 8;
      digest[4 * index + 3] = word;
    }
  }

  #block(start: number): void {
    const words = this.#words;
    const { message } = this;
    for (let index = 0; index < 16; index++) {
      const at = start + 4 * index;
      words[index] =
        (octetAt(message, at) << 24) |
        (octetAt(message, at + 1) << 16) |
        (octetAt(message, at + 2) << 8) |
        octetAt(message, at + 3);
    }
    for (let index = 16; index < 80; index++) {
      const mixed =
        (words[index - 3] as number) ^
        (words[index - 8] as number) ^
        (words[index - 14] as number) ^
        (words[index - 16] as number);
      words[index] = (mixed << 1) | (mixed >>> 31);
    }
    const state = this.#state;
    let a = state[0] as number;
    let b = state[1] as number;
    let c = state[2] as number;
    let d = state[3] as number;
    let e = state[4] as number;
    for (let index = 0; index < 80; index++) {
      let chosen: number;
      if (index < 20) chosen = ((b & c) | (~b & d)) + 0x5a827999;
      else if (index < 40) chosen = (b ^ c ^ d) + 0x6ed9eba1;
      else if (index < 60) chosen = ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
      else chosen = (b ^ c ^ d) + 0xca62c1d6;
      const next = (((a << 5) | (a >>> 27)) + chosen + e + (words[index] as number)) | 0;
      e = d;
      d = c;
      c = (b << 30) | (b >>> 2);
      b = a;
      a = next;
    }
    state[0] = ((state[0] as number) + a) | 0;
    state[1] = ((state[1] as number) + b) | 0;
    state[2] = ((state[2] as number) + c) | 0;
    state[3] = ((state[3] as number) + d) | 0;
    state[4] = ((state[4] as number) + e) | 0;
  }
}
