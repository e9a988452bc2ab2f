/** Ways back for replies to batched datagrams. */

import type { Endpoint } from "../plugin/message/endpoint.ts";
import {
  CONTROL_WORDS,
  NAME_STRIDE,
  NAME_WORDS,
  type ReceiveBatch,
} from "../runtime/linux/datagram-batch.ts";
import { readAddress, readAddressOctets, readFamily, readPort } from "../runtime/linux/socket-address.ts";
import { askedEndpoint, SlotLocal } from "./asked-endpoint.ts";
import { type AddressBuffer, copyAddressWords, KeptEndpoint } from "./kept-endpoint.ts";
import type { ReplyPort } from "./transport.ts";

/** The socket of the datagrams, as their ways back see it. */
export interface DatagramTransport {
  /** The bound address. */
  readonly local: Endpoint;
  /** Whether it is bound to all addresses. */
  readonly isWildcard: boolean;
  readonly received: ReceiveBatch;
  /** `received.names` as words. */
  readonly names: Int32Array;
  /** Scratch for one socket address as octets. */
  readonly scratch: AddressBuffer;
  /** Of the last buffer. */
  readonly bufferSize: number;
  /** A query is answered later, perhaps still in this turn. */
  noteKept(): void;
  /** Returns a buffer for a reply. */
  buffer(size: number): Uint8Array;
  /** The arrival data of the datagram in a slot. The few distinct values are shared, so that waiting queries need no copies. */
  infoOf(slot: number): Uint32Array;
  /**
   * Sends the reply in the last buffer.
   * @param size as requested
   * @param names socket addresses; the client's begins at the word `nameAt`
   * @param info where the query arrived, from the word `infoAt` on
   */
  send(
    size: number,
    length: number,
    names: Int32Array,
    nameAt: number,
    info: Uint32Array,
    infoAt: number,
    infoLength: number,
  ): void;
}

/** The sender of the datagram in one slot, and the way back to it; valid until the next batch. */
export class SlotPort implements ReplyPort, Endpoint {
  readonly #transport: DatagramTransport;
  readonly #slot: number;
  readonly #nameAt: number;
  readonly local: Endpoint;
  /** Shared by all that keep the address and the way back. */
  #kept: KeptPort | undefined;
  #size = 0;

  constructor(transport: DatagramTransport, slot: number) {
    this.#transport = transport;
    this.#slot = slot;
    this.#nameAt = slot * NAME_STRIDE;
    this.local = transport.isWildcard
      ? new SlotLocal(transport.received, slot, transport.local)
      : transport.local;
  }

  get client(): Endpoint {
    return this;
  }

  get address(): string {
    return readAddress(this.#transport.received.names, this.#nameAt);
  }

  get port(): number {
    return readPort(this.#transport.received.names, this.#nameAt);
  }

  get family(): 4 | 6 {
    return readFamily(this.#transport.received.names, this.#nameAt);
  }

  get octets(): Uint8Array {
    return readAddressOctets(this.#transport.received.names, this.#nameAt);
  }

  copyAddress(words: Int32Array): 4 | 6 {
    return copyAddressWords(this.#transport.names, this.#slot * NAME_WORDS, words);
  }

  snapshot(): Endpoint {
    this.#kept ??= new KeptPort(this.#transport, this.#slot);
    return this.#kept;
  }

  keep(): ReplyPort {
    this.#transport.noteKept();
    this.#kept ??= new KeptPort(this.#transport, this.#slot);
    return this.#kept;
  }

  /** Another datagram is in this slot. */
  forget(): void {
    this.#kept = undefined;
  }

  buffer(size: number): Uint8Array {
    this.#size = size;
    return this.#transport.buffer(size);
  }

  send(length: number): void {
    const { received, names } = this.#transport;
    this.#transport.send(
      this.#size,
      length,
      names,
      this.#slot * NAME_WORDS,
      received.packetInfo,
      this.#slot * CONTROL_WORDS,
      received.packetInfoLength(this.#slot),
    );
  }

  drop(): void {
    this.#size = 0;
  }
}

/** The way back for a late reply, with its client. */
class KeptPort extends KeptEndpoint implements ReplyPort {
  readonly #transport: DatagramTransport;
  readonly #info: Uint32Array;

  constructor(transport: DatagramTransport, slot: number) {
    super(transport.names, slot * NAME_WORDS);
    this.#transport = transport;
    this.#info = transport.infoOf(slot);
  }

  get client(): Endpoint {
    return this;
  }

  get local(): Endpoint {
    const { isWildcard, local } = this.#transport;
    return isWildcard ? askedEndpoint(this.#info, local) : local;
  }

  keep(): ReplyPort {
    return this;
  }

  buffer(size: number): Uint8Array {
    return this.#transport.buffer(size);
  }

  send(length: number): void {
    const { scratch } = this.#transport;
    const info = this.#info;
    this.writeTo(scratch.words);
    this.#transport.send(this.#transport.bufferSize, length, scratch.words, 0, info, 0, info.byteLength);
  }

  drop(): void {
    // The buffer belongs to the transport.
  }
}
