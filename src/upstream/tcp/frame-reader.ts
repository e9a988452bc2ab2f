import { octetAt } from "../../dns/octets.ts";
import { type BufferPool, LEAST_POOLED, type PooledBuffer } from "../../lib/collections/buffer-pool.ts";

/** Messages between two looks at the clock. The first look follows the first message, because uncompiled code is slow. */
const MESSAGES_A_LOOK = 4;
const NEVER = (): boolean => false;

/**
 * Splits a stream into messages with two octets of length before each (RFC 1035 section 4.2.2). Keeps at most one unfinished
 * message.
 */
export class FrameReader {
  readonly #received: (message: Uint8Array, lent?: PooledBuffer) => void;
  readonly #buffers: BufferPool | undefined;
  /** First octet of a length whose second has not arrived, else -1. */
  #firstLengthOctet = -1;
  #message: Uint8Array | undefined;
  /** The owner of {@link #message}, if it is lent. */
  #lent: PooledBuffer | undefined;
  #filled = 0;
  #read = 0;

  /**
   * @param received receives each message, in its own octets, or in `lent` ones to be returned after use
   * @param buffers for large messages
   */
  constructor(received: (message: Uint8Array, lent?: PooledBuffer) => void, buffers?: BufferPool) {
    this.#received = received;
    this.#buffers = buffers;
  }

  /**
   * The octets of `chunk` may be reused after the call.
   * @param isEnough called after the first message and then after every few; true to leave the rest
   * @returns how many octets were read
   */
  push(chunk: Uint8Array, isEnough: () => boolean = NEVER): number {
    let at = 0;
    let nextLook = 1;
    this.#read = 0;
    while (at < chunk.length) {
      if (this.#message === undefined) at = this.#readLength(chunk, at);
      at = this.#fill(chunk, at);
      if (this.#read < nextLook) continue;
      if (isEnough()) break;
      nextLook += Math.min(nextLook + 1, MESSAGES_A_LOOK);
    }
    return at;
  }

  #readLength(chunk: Uint8Array, at: number): number {
    if (this.#firstLengthOctet < 0) {
      this.#firstLengthOctet = octetAt(chunk, at++);
      if (at === chunk.length) return at;
    }
    const length = (this.#firstLengthOctet << 8) | octetAt(chunk, at++);
    this.#firstLengthOctet = -1;
    this.#lent = length > LEAST_POOLED ? this.#buffers?.take(length) : undefined;
    this.#message = this.#lent?.bytes.subarray(0, length) ?? new Uint8Array(length);
    this.#filled = 0;
    return at;
  }

  #fill(chunk: Uint8Array, at: number): number {
    const message = this.#message;
    if (message === undefined) return at;
    const count = Math.min(message.length - this.#filled, chunk.length - at);
    message.set(chunk.subarray(at, at + count), this.#filled);
    this.#filled += count;
    if (this.#filled === message.length) {
      const lent = this.#lent;
      this.#message = undefined;
      this.#lent = undefined;
      this.#read++;
      this.#received(message, lent);
    }
    return at + count;
  }
}
