/**
 * DNS over TCP (RFC 7766): messages behind two octets of length, pipelined, answered in whatever order the answers come.
 * A client can neither hold more queries under way than allowed, nor let replies pile up that it does not read. Where there are as
 * many connections as allowed, the one that has been silent the longest goes for a new one: who opens connections and says nothing
 * does not shut out others.
 */
import { createServer, type Server, type Socket } from "node:net";
import { octetAt, readU16, writeU16 } from "../dns/octets.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import type { Endpoint } from "../plugin/endpoint.ts";
import { ReportedEndpoint } from "./endpoint.ts";
import {
  errorCode,
  formatListenAddress,
  ListenError,
  type ListenTarget,
  type MessageReceiver,
  type ReplyPort,
  type Transport,
} from "./transport.ts";
import { NO_IPV6 } from "./udp.ts";

/** Read anew for each connection and message, so that a reload changes them for open sockets too. */
export interface TcpLimits {
  /** Milliseconds until the first message must be whole. */
  readonly readTimeout: number;
  /** Milliseconds until each further message must be whole. */
  readonly idleTimeout: number;
  /** Messages on one connection, -1 for no limit. */
  readonly maxQueries: number;
}

export interface TcpOptions {
  readonly clock: Clock;
  limits(): TcpLimits;
  /** As of `UdpOptions`. */
  readonly reusePort?: boolean;
  /** Connections at one time; past it one that waits for no answer is closed for each new one. */
  readonly maxConnections?: number;
  /** Told of each connection closed because of `maxConnections`: a silent one, or the new one where there is none. */
  readonly onTurnedAway?: () => void;
}

const MAX_CONNECTIONS = 16_384;
/** Connections looked at to find one that waits for no answer. */
const MAX_LOOKED_AT = 64;
/** Queries of one connection that may be under way before it is read no further. */
const MAX_IN_FLIGHT = 256;
/** Octets of replies that a client may leave unread before it is read no further. */
const MAX_UNSENT = 512 * 1024;
/** What all clients that leave replies unread share, so that very many of them get less each. */
const MAX_UNSENT_OF_ALL = 32 * 1024 * 1024;
const LENGTH_OCTETS = 2;

/**
 * Opens a TCP socket and hands every message to `receiver`.
 * @throws ListenError
 */
export async function listenTcp(
  target: ListenTarget,
  receiver: MessageReceiver,
  options: TcpOptions,
): Promise<Transport> {
  const transport = new TcpTransport(receiver, options);
  await transport.listen(target);
  return transport;
}

class TcpTransport implements Transport {
  readonly name = "tcp";
  host = "";
  port = 0;
  readonly receiver: MessageReceiver;
  readonly options: TcpOptions;
  readonly #server: Server;
  /** Those not heard of for the longest time come first. */
  readonly #connections = new Set<Connection>();
  /** Connections whose client is behind with reading. */
  #clogged = 0;

  constructor(receiver: MessageReceiver, options: TcpOptions) {
    this.receiver = receiver;
    this.options = options;
    // Half-open: a client that has no more to ask still gets the answers that are under way.
    const halfOpen = { noDelay: true, pauseOnConnect: false, allowHalfOpen: true };
    this.#server = createServer(halfOpen, (socket) => this.#accept(socket));
  }

  async listen({ host, port }: ListenTarget): Promise<void> {
    const attempt = (address: string): Promise<void> =>
      new Promise((resolve, reject) => {
        const refused = (error: Error): void =>
          reject(new ListenError(formatListenAddress("tcp", host, port), errorCode(error), error));
        this.#server.once("error", refused);
        const options = {
          host: address,
          port,
          exclusive: true,
          reusePort: this.options.reusePort ?? false,
          ipv6Only: host !== "",
        };
        this.#server.listen(options, () => {
          this.#server.removeListener("error", refused);
          resolve();
        });
      });
    if (host !== "") await attempt(host);
    else {
      await attempt("::").catch((error: unknown) => {
        if (error instanceof ListenError && NO_IPV6.has(error.code)) return attempt("0.0.0.0");
        throw error;
      });
    }
    // From here on an accept that fails (out of descriptors) passes by; the next one may succeed.
    this.#server.on("error", () => undefined);
    const address = this.#server.address();
    if (address !== null && typeof address === "object") {
      this.host = address.address;
      this.port = address.port;
    }
  }

  share(): boolean {
    return this.options.reusePort ?? false;
  }

  pause(): void {
    this.#server.close();
    for (const connection of this.#connections) connection.stopReading();
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      for (const connection of this.#connections) connection.destroy();
    });
  }

  forget(connection: Connection): void {
    this.#connections.delete(connection);
  }

  /** A whole message has come. */
  heardFrom(connection: Connection): void {
    if (this.#connections.delete(connection)) this.#connections.add(connection);
  }

  #accept(socket: Socket): void {
    if (this.#connections.size >= (this.options.maxConnections ?? MAX_CONNECTIONS)) {
      this.options.onTurnedAway?.();
      const silent = this.#longestSilent();
      if (silent === undefined) {
        socket.destroy();
        return;
      }
      this.forget(silent);
      silent.destroy();
    }
    this.#connections.add(new Connection(socket, this));
  }

  /** Octets of replies that a connection may leave unread before it is read no further. */
  get unsentLimit(): number {
    return Math.min(MAX_UNSENT, MAX_UNSENT_OF_ALL / this.#clogged);
  }

  noteClogged(change: 1 | -1): void {
    this.#clogged += change;
  }

  #longestSilent(): Connection | undefined {
    let left = MAX_LOOKED_AT;
    for (const connection of this.#connections) {
      if (!connection.awaitsAnswers) return connection;
      if (--left === 0) return undefined;
    }
    return undefined;
  }
}

class Connection {
  readonly client: Endpoint;
  readonly local: Endpoint;
  readonly #socket: Socket;
  readonly #transport: TcpTransport;
  #pending: Buffer = EMPTY;
  #inFlight = 0;
  #received = 0;
  /** What comes from now on is not taken. */
  #noMoreReads = false;
  /** The client has closed its side. */
  #hasEnded = false;
  #isClogged = false;
  #timer: Timer | undefined;

  constructor(socket: Socket, transport: TcpTransport) {
    this.#socket = socket;
    this.#transport = transport;
    this.client = new ReportedEndpoint(socket.remoteAddress ?? "::", socket.remotePort ?? 0);
    this.local = new ReportedEndpoint(socket.localAddress ?? "::", socket.localPort ?? 0);
    socket.on("data", (data) => this.#onData(data));
    socket.on("end", () => {
      this.#hasEnded = true;
      this.#takeMessages();
    });
    socket.on("drain", () => {
      this.#setClogged(false);
      this.#resume();
    });
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      this.#timer?.cancel();
      this.#setClogged(false);
      transport.forget(this);
    });
    this.#expectMessage(transport.options.limits().readTimeout);
  }

  get awaitsAnswers(): boolean {
    return this.#inFlight > 0;
  }

  stopReading(): void {
    this.#noMoreReads = true;
    this.#socket.pause();
    this.#finishIfDone();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** `framed` begins with two octets of room for the length. */
  sendFramed(framed: Uint8Array, length: number): void {
    this.#settle();
    if (this.#socket.destroyed) return;
    writeU16(framed, 0, length);
    const flowing = this.#socket.write(framed.subarray(0, length + LENGTH_OCTETS));
    if (!flowing) {
      this.#setClogged(true);
      if (this.#hasTooMuchUnsent) this.#socket.pause();
    }
    this.#finishIfDone();
  }

  dropped(): void {
    this.#settle();
    this.#finishIfDone();
  }

  #settle(): void {
    this.#inFlight--;
    this.#resume();
  }

  #onData(data: Buffer): void {
    this.#pending = this.#pending.length === 0 ? data : Buffer.concat([this.#pending, data]);
    this.#takeMessages();
  }

  #takeMessages(): void {
    const limits = this.#transport.options.limits();
    let at = 0;
    const pending = this.#pending;
    while (!this.#isBusy && pending.length - at >= LENGTH_OCTETS) {
      const length = readU16(pending, at);
      if (pending.length - at - LENGTH_OCTETS < length) break;
      const message = pending.subarray(at + LENGTH_OCTETS, at + LENGTH_OCTETS + length);
      at += LENGTH_OCTETS + length;
      this.#received++;
      this.#inFlight++;
      if (limits.maxQueries >= 0 && this.#received >= limits.maxQueries) this.#noMoreReads = true;
      this.#expectMessage(limits.idleTimeout);
      this.#transport.receiver.receive(message, length, new TcpReplyPort(this));
    }
    if (at > 0) this.#transport.heardFrom(this);
    // What is left is copied, so that a few octets do not hold on to a large chunk.
    this.#pending = at === 0 ? pending : Buffer.from(pending.subarray(at));
    if (this.#isBusy) this.#socket.pause();
    this.#finishIfDone();
  }

  #resume(): void {
    if (this.#isBusy || !this.#socket.isPaused()) return;
    this.#socket.resume();
    // Messages that had already arrived bring no further event.
    if (holdsMessage(this.#pending)) setImmediate(() => this.#takeMessages());
  }

  /** Whether nothing more is taken from the client for now. */
  get #isBusy(): boolean {
    return this.#noMoreReads || this.#inFlight >= MAX_IN_FLIGHT || this.#hasTooMuchUnsent;
  }

  get #hasTooMuchUnsent(): boolean {
    return this.#isClogged && this.#socket.writableLength > this.#transport.unsentLimit;
  }

  #setClogged(isClogged: boolean): void {
    if (this.#isClogged === isClogged) return;
    this.#isClogged = isClogged;
    this.#transport.noteClogged(isClogged ? 1 : -1);
  }

  /** One deadline for a whole message: a client that sends it octet by octet gains no time. */
  #expectMessage(timeout: number): void {
    this.#timer?.cancel();
    this.#timer = this.#transport.options.clock.after(timeout, () => {
      // Whoever waits for an answer of ours is not idle.
      if (this.#inFlight > 0) this.#expectMessage(this.#transport.options.limits().idleTimeout);
      else this.#socket.destroy();
    });
  }

  #finishIfDone(): void {
    if (this.#inFlight > 0) return;
    if (this.#noMoreReads || (this.#hasEnded && !holdsMessage(this.#pending))) this.#socket.end();
  }
}

const EMPTY = Buffer.alloc(0);

function holdsMessage(pending: Buffer): boolean {
  return (
    pending.length >= LENGTH_OCTETS &&
    pending.length - LENGTH_OCTETS >= ((octetAt(pending, 0) << 8) | octetAt(pending, 1))
  );
}

class TcpReplyPort implements ReplyPort {
  readonly #connection: Connection;
  #framed: Uint8Array = EMPTY;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  get client(): Endpoint {
    return this.#connection.client;
  }

  get local(): Endpoint {
    return this.#connection.local;
  }

  keep(): ReplyPort {
    return this;
  }

  buffer(size: number): Uint8Array {
    this.#framed = Buffer.allocUnsafe(size + LENGTH_OCTETS);
    return this.#framed.subarray(LENGTH_OCTETS);
  }

  send(length: number): void {
    this.#connection.sendFramed(this.#framed, length);
  }

  drop(): void {
    this.#connection.dropped();
  }
}
