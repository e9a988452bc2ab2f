/**
 * Listens for byte streams: accepts TCP connections within the budget, passes each through its layers (a PROXY header, a TLS
 * handshake), and hands it to the protocol on top (framed DNS, HTTP). Everything that is common to these transports is here: the
 * address, the limit of connections, the handshake timeout, pause and close.
 */
import { createServer, type Server, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { LinkedList, type ListPlace } from "../lib/collections/linked-list.ts";
import { isWildcardHost } from "../lib/net/listen-address.ts";
import type { Clock, Timer } from "../lib/time/clock.ts";
import type { Endpoint, TransportName } from "../plugin/message/endpoint.ts";
import {
  type BudgetedConnection,
  type ConnectionAccount,
  type ConnectionBudget,
  TCP_OCTETS,
} from "./connection-budget.ts";
import { ReportedEndpoint } from "./endpoint.ts";
import { type OpenTcpSocket, type TcpSocket, withoutSystemCalls } from "./tcp-socket.ts";
import {
  errorCode,
  formatListenAddress,
  ListenError,
  type ListenTarget,
  type Transport,
} from "./transport.ts";
import { NO_IPV6 } from "./udp.ts";

/** One connection, after some or all of its layers. */
export interface ByteStream {
  /** Octets of the protocol: those of TCP, or those inside of TLS. */
  readonly socket: Socket;
  /** The client. A layer that learns of a client behind a proxy replaces it. */
  readonly client: Endpoint;
  readonly local: Endpoint;
}

/**
 * Runs on a new connection before its first message. It calls `proceed` once, with its own stream on top of the given one, or
 * destroys the socket. The server enforces the timeout.
 */
export interface StreamLayer {
  enter(stream: ByteStream, proceed: (stream: ByteStream) => void): void;
}

/** The protocol on a stream. */
export interface StreamUser {
  /** Whether a query is in flight on it. */
  readonly awaitsAnswers: boolean;
  /** Reads nothing more from the client, and ends the stream when all queries in flight are answered. */
  stopReading(): void;
}

export interface ByteStreamServerOptions {
  readonly name: TransportName;
  readonly clock: Clock;
  readonly budget: ConnectionBudget;
  /** Lowest first; called for each connection, so that a reload also applies to open sockets. */
  readonly layers?: (() => readonly StreamLayer[]) | undefined;
  /** Memory of a connection as long as it is open; called for each connection. Default: {@link TCP_OCTETS}. */
  readonly connectionOctets?: (() => number) | undefined;
  /** Milliseconds from the connection until its layers are passed; called for each connection. */
  handshakeTimeout(): number;
  /** Starts the protocol. It must report to `account` each whole message, and the octets that the connection holds. */
  serve(stream: ByteStream, account: ConnectionAccount): StreamUser;
  /** See `UdpOptions`. */
  readonly reusePort?: boolean | undefined;
  /** Makes the listening socket with options that Node does not offer. Default: Node's own socket. */
  readonly openSocket?: OpenTcpSocket | undefined;
  /** Called for each connection closed because there are too many: a silent one, or else the new one. */
  readonly onTurnedAway?: (() => void) | undefined;
  /** Called for each connection closed because its client does not read its replies. */
  readonly onUnread?: (() => void) | undefined;
}

/**
 * Opens a listening socket.
 * @throws ListenError
 */
export async function listenForStreams(
  target: ListenTarget,
  options: ByteStreamServerOptions,
): Promise<Transport> {
  const server = new ByteStreamServer(options);
  await server.listen(target);
  return server;
}

class ByteStreamServer implements Transport {
  readonly name: TransportName;
  host = "";
  port = 0;
  readonly options: ByteStreamServerOptions;
  readonly #server: Server;
  readonly #connections = new LinkedList<OpenConnection>();
  /** Pending until the server is closed and has no connection. */
  readonly #gone = Promise.withResolvers<void>();
  #socket: TcpSocket | undefined;

  /** Accepted connections, including those that were turned away. */
  accepted = 0;

  constructor(options: ByteStreamServerOptions) {
    this.name = options.name;
    this.options = options;
    // Half-open: a client that has sent its last query still gets the answers in flight.
    const halfOpen = { noDelay: true, pauseOnConnect: false, allowHalfOpen: true };
    this.#server = createServer(halfOpen, (socket) => this.#accept(socket));
    this.#server.once("close", () => this.#gone.resolve());
  }

  async listen(target: ListenTarget): Promise<void> {
    const { reusePort = false, openSocket = withoutSystemCalls } = this.options;
    this.#socket = openSocket(target, { reusePort });
    if (this.#socket !== undefined) await this.#attempt(target, { fd: this.#socket.fd });
    else await this.#listenByNode(target, reusePort);
    // From here on, a failed accept (out of descriptors) is ignored; the next one may succeed.
    this.#server.on("error", () => undefined);
    const address = this.#server.address();
    if (address !== null && typeof address === "object") {
      this.host = address.address;
      this.port = address.port;
    }
  }

  share(on = true): boolean {
    // A closed descriptor may have been reused for another file.
    if (!this.#server.listening) return false;
    return this.#socket?.share(on) ?? this.options.reusePort ?? false;
  }

  holdBack(): void {
    if (this.#server.listening) this.#socket?.holdBack();
  }

  pause(): void {
    this.#server.close();
    for (const connection of this.#connections) connection.stopReading();
  }

  async fadeOut(patience: number): Promise<void> {
    this.holdBack();
    await untilAccepted(() => this.accepted);
    // The system lets the address be bound again while connections to it are open, so close does not wait for them.
    this.#server.close();
    const timer = this.options.clock.after(patience, () => {
      for (const connection of this.#connections) connection.destroy();
    });
    this.#server.once("close", () => timer.cancel());
  }

  /** To be called after {@link fadeOut}. */
  emptied(): Promise<void> {
    return this.#gone.promise;
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      for (const connection of this.#connections) connection.destroy();
    });
  }

  forget(connection: OpenConnection): void {
    if (connection.place !== undefined) this.#connections.remove(connection.place);
    this.options.budget.forget(connection);
  }

  async #listenByNode(target: ListenTarget, reusePort: boolean): Promise<void> {
    const { host, port } = target;
    const isWildcard = isWildcardHost(host);
    const common = { port, exclusive: true, reusePort, ipv6Only: !isWildcard };
    if (!isWildcard) {
      await this.#attempt(target, { ...common, host });
      return;
    }
    await this.#attempt(target, { ...common, host: "::" }).catch((error: unknown) => {
      if (!(error instanceof ListenError && NO_IPV6.has(error.code))) throw error;
      return this.#attempt(target, { ...common, host: "0.0.0.0" });
    });
  }

  #attempt({ host, port }: ListenTarget, options: object): Promise<void> {
    return new Promise((resolve, reject) => {
      const refused = (error: Error): void =>
        reject(new ListenError(formatListenAddress("tcp", host, port), errorCode(error), error));
      this.#server.once("error", refused);
      this.#server.listen(options, () => {
        this.#server.removeListener("error", refused);
        resolve();
      });
    });
  }

  #accept(socket: Socket): void {
    this.accepted++;
    const connection = new OpenConnection(socket, this);
    if (!this.options.budget.admit(connection, this.options.onTurnedAway)) {
      socket.destroy();
      return;
    }
    connection.place = this.#connections.append(connection);
    connection.begin();
  }
}

/** Limit of accepts, one per turn: a longer queue of pending connections is not drained. */
const MOST_ACCEPTED = 10_000;

/**
 * Resolves when the pending connections have been accepted: closing the socket would reset them. The caller has to close it at once
 * then. libuv accepts one connection per socket in each turn of the event loop, so the queue is empty when a turn has accepted
 * none.
 * @param accepted returns the number of accepted connections
 */
export async function untilAccepted(accepted: () => number): Promise<void> {
  // The first turn may begin before the loop's accepts.
  await nextTurn();
  for (let turn = 0, before = -1; turn < MOST_ACCEPTED && accepted() !== before; turn++) {
    before = accepted();
    await nextTurn();
  }
}

class OpenConnection implements BudgetedConnection, ConnectionAccount {
  budgetPlace: ListPlace<BudgetedConnection> | undefined;
  readonly octets: number;
  /** Its place in the server's list. */
  place: ListPlace<OpenConnection> | undefined;
  readonly #socket: Socket;
  readonly #server: ByteStreamServer;
  #user: StreamUser | undefined;
  /** The socket with the protocol. */
  #inner: Socket;
  #handshake: Timer | undefined;

  constructor(socket: Socket, server: ByteStreamServer) {
    this.#socket = socket;
    this.#inner = socket;
    this.#server = server;
    this.octets = server.options.connectionOctets?.() ?? TCP_OCTETS;
    // A broken connection closes itself; without a listener the process would exit.
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      this.#handshake?.cancel();
      server.forget(this);
    });
  }

  get awaitsAnswers(): boolean {
    return this.#user?.awaitsAnswers ?? false;
  }

  begin(): void {
    const { options } = this.#server;
    const socket = this.#socket;
    const stream = streamOf(socket);
    const toPass = options.layers?.() ?? NO_LAYERS;
    if (toPass.length > 0) this.#handshake = options.clock.after(options.handshakeTimeout(), this.#lookSoon);
    this.#pass(toPass, 0, stream);
  }

  stopReading(): void {
    if (this.#user === undefined) this.destroy();
    else this.#user.stopReading();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  giveUp(): void {
    const socket = this.#socket;
    if (socket.destroyed) return;
    this.#server.options.onUnread?.();
    // The system would keep unread data for minutes, which is memory of the process as well: a reset frees it. Node cannot reset a
    // socket that is being shut down.
    if (socket.writableEnded || this.#inner.writableEnded) socket.destroy();
    else socket.resetAndDestroy();
  }

  get unsentLimit(): number {
    return this.#server.options.budget.unsentLimit;
  }

  takes(octets: number): boolean {
    return this.#server.options.budget.takes(octets);
  }

  hasRoomFor(octets: number): boolean {
    return this.#server.options.budget.hasRoomFor(octets);
  }

  notePassed(octets: number): void {
    this.#server.options.budget.notePassed(octets);
  }

  heardFrom(): void {
    this.#server.options.budget.heardFrom(this);
  }

  holds(octets: number, isStuck: boolean): void {
    this.#server.options.budget.noteHeld(this, this.#socket.destroyed ? 0 : octets, isStuck);
  }

  // Timers run before sockets are read: after a pause of the process, the client may have sent its data in time.
  readonly #lookSoon = (): void =>
    void setImmediate(() => {
      if (this.#handshake !== undefined) this.destroy();
    });

  #pass(layers: readonly StreamLayer[], index: number, stream: ByteStream): void {
    const layer = layers[index];
    if (layer === undefined) this.#serve(stream);
    else layer.enter(stream, (inner) => this.#pass(layers, index + 1, inner));
  }

  #serve(stream: ByteStream): void {
    this.#handshake?.cancel();
    this.#handshake = undefined;
    if (this.#socket.destroyed) return;
    const { options } = this.#server;
    this.#inner = stream.socket;
    this.#user = options.serve(stream, this);
  }
}

/** A connection before its first layer. */
export function streamOf(socket: Socket): ByteStream {
  return {
    socket,
    client: new ReportedEndpoint(socket.remoteAddress ?? "::", socket.remotePort ?? 0),
    local: new ReportedEndpoint(socket.localAddress ?? "::", socket.localPort ?? 0),
  };
}

const NO_LAYERS: readonly StreamLayer[] = [];
