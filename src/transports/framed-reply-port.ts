/** The way back of a message on a byte stream: a reply after two octets of length. */
import { type BufferPool, LEAST_POOLED, type PooledBuffer } from "../lib/collections/buffer-pool.ts";
import type { Endpoint } from "../plugin/message/endpoint.ts";
import type { PartPort, ReplyPort } from "./transport.ts";

/** Octets of the length. */
export const LENGTH_OCTETS = 2;
const EMPTY = new Uint8Array(0);

/** The connection as its ports see it. */
export interface ReplyConnection {
  readonly client: Endpoint;
  readonly local: Endpoint;
  readonly isOpen: boolean;
  /** Large replies are written into these. */
  readonly buffers: BufferPool;
  /** `framed` begins with two octets of room for the length; it is `lent`, or the reply's own. */
  sendFramed(framed: Uint8Array, length: number, lent: PooledBuffer | undefined): void;
  /** Like {@link sendFramed}, with more for the same query to follow. */
  sendPart(framed: Uint8Array, length: number, lent: PooledBuffer | undefined): boolean;
  drained(): Promise<void>;
  /** A query is settled without a message. */
  dropped(): void;
  destroy(): void;
}

export class FramedReplyPort implements ReplyPort, PartPort {
  readonly #connection: ReplyConnection;
  #framed: Uint8Array = EMPTY;
  #lent: PooledBuffer | undefined;

  constructor(connection: ReplyConnection) {
    this.#connection = connection;
  }

  get client(): Endpoint {
    return this.#connection.client;
  }

  get local(): Endpoint {
    return this.#connection.local;
  }

  get parts(): PartPort {
    return this;
  }

  get isOpen(): boolean {
    return this.#connection.isOpen;
  }

  keep(): ReplyPort {
    return new FramedReplyPort(this.#connection);
  }

  buffer(size: number): Uint8Array {
    const octets = size + LENGTH_OCTETS;
    this.#lent = octets > LEAST_POOLED ? this.#connection.buffers.take(octets) : undefined;
    this.#framed = this.#lent?.bytes ?? Buffer.allocUnsafe(octets);
    return this.#framed.subarray(LENGTH_OCTETS);
  }

  send(length: number): void {
    const framed = this.#framed;
    const lent = this.#lent;
    this.#letGo();
    this.#connection.sendFramed(framed, length, lent);
  }

  sendPart(length: number): boolean {
    const framed = this.#framed;
    const lent = this.#lent;
    this.#letGo();
    return this.#connection.sendPart(framed, length, lent);
  }

  /** The port lives as long as its connection. */
  #letGo(): void {
    this.#framed = EMPTY;
    this.#lent = undefined;
  }

  drained(): Promise<void> {
    return this.#connection.drained();
  }

  drop(): void {
    this.#connection.dropped();
  }

  abort(): void {
    this.#connection.destroy();
  }
}
