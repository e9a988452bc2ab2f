/**
 * A part of a server's connections. OpenSSL processes all connections of a listener for each event of one, so a server has many
 * listeners behind one socket and distributes its clients among them.
 */
import { readAddress, readPort } from "../../runtime/linux/socket-address.ts";
import { QuicUnavailable } from "../availability.ts";
import type { QuicConnectionUser, QuicPeer } from "../quic.ts";
import { OpenSslConnection } from "./connection.ts";
import * as C from "./constants.ts";
import { DatagramPipe, type DatagramSink, type PipeBatch } from "./datagram-pipe.ts";
import { EventTimer } from "./event-timer.ts";
import type { Pointer, QuicLibrary } from "./library.ts";
import type { StreamMemory } from "./stream.ts";

export interface ShardOptions {
  readonly library: QuicLibrary;
  readonly context: Pointer;
  readonly memory: StreamMemory;
  readonly batch: PipeBatch;
  readonly maxStreams: () => number;
  readonly maxHeldForPeer: () => number;
  /** @returns `undefined` to refuse the connection, which is then closed */
  readonly onConnection: (connection: OpenSslConnection) => QuicConnectionUser | undefined;
  readonly sink: DatagramSink;
  /** It has to be run before this turn ends. */
  readonly onTouched: (shard: Shard) => void;
}

export class Shard {
  readonly #options: ShardOptions;
  readonly #listener: Pointer;
  readonly #pipe: DatagramPipe;
  readonly #connections = new Set<OpenSslConnection>();
  readonly #timer: EventTimer;
  /** Whether OpenSSL has processed everything. */
  #isFresh = false;
  readonly #process = (): void => {
    this.#options.library.ssl.SSL_handle_events(this.#listener);
  };

  /** @throws QuicUnavailable */
  constructor(options: ShardOptions) {
    const { library, context, batch } = options;
    const { ssl } = library;
    this.#options = options;
    // Without flags: an address is validated (Retry, RFC 9000 section 8.1.2) before anything is kept for it.
    this.#listener = ssl.SSL_new_listener(context, 0);
    if (this.#listener === 0) throw new QuicUnavailable(`no listener: ${library.errors()}`);
    this.#pipe = new DatagramPipe(library, batch);
    ssl.SSL_set_bio(this.#listener, this.#pipe.inner, this.#pipe.inner);
    ssl.SSL_set_blocking_mode(this.#listener, 0);
    if (ssl.SSL_listen(this.#listener) !== 1)
      throw new QuicUnavailable(`OpenSSL does not listen: ${library.errors()}`);
    this.#timer = new EventTimer(ssl, this.#listener, () => options.onTouched(this));
  }

  get connections(): number {
    return this.#connections.size;
  }

  /** Queues a datagram of a known client, or of one whose address must be validated. */
  queue(octets: Uint8Array, length: number, names: Uint8Array, nameAt: number): void {
    if (this.#pipe.queue(octets, length, names, nameAt)) return;
    this.deliver();
    this.#pipe.queue(octets, length, names, nameAt);
  }

  /** Passes on the queued datagrams, before another shard queues any. */
  deliver(): void {
    this.#pipe.deliver(this.#process);
    this.#isFresh = true;
  }

  /** Processes a datagram that may open a connection: any new connection after it belongs to its sender. */
  begin(octets: Uint8Array, length: number, names: Uint8Array, nameAt: number): void {
    this.deliver();
    this.queue(octets, length, names, nameAt);
    this.deliver();
    const { ssl } = this.#options.library;
    for (;;) {
      const pointer = ssl.SSL_accept_connection(this.#listener, C.SSL_ACCEPT_CONNECTION_NO_BLOCK);
      if (pointer === 0) break;
      this.#accept(pointer, { address: readAddress(names, nameAt), port: readPort(names, nameAt) });
    }
    ssl.ERR_clear_error();
  }

  /** Processes all pending events, and sends the results. */
  run(): void {
    if (!this.#isFresh) this.#process();
    this.#isFresh = false;
    for (const connection of this.#connections) {
      connection.poll();
      if (connection.isOver) this.#connections.delete(connection);
    }
    this.#process();
    // Data that OpenSSL had no room for is sent when there is some again.
    while (this.#pipe.drain(this.#options.sink) > 0) this.#process();
    this.#timer.set();
  }

  close(): void {
    this.#timer.cancel();
    for (const connection of this.#connections) connection.free();
    this.#connections.clear();
    this.#options.library.ssl.SSL_free(this.#listener);
    this.#pipe.close();
  }

  #accept(pointer: Pointer, peer: QuicPeer): void {
    const connection = new OpenSslConnection(pointer, {
      ...this.#options,
      peer,
      onTouched: () => this.#options.onTouched(this),
    });
    this.#connections.add(connection);
    connection.user = this.#options.onConnection(connection);
  }
}
