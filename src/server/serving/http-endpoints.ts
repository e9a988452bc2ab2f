/**
 * HTTP listeners of the plugins. A socket outlives a reload that needs it again; its handlers are swapped in one step
 * when the new configuration comes into force, so no probe meets a closed port.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { type AddressInfo, Server as NetServer, type Socket } from "node:net";
import type { ListPlace } from "../../lib/collections/linked-list.ts";
import { nodeHttp } from "../../lib/files/node-modules.ts";
import type { IdentityHolder } from "../../lib/files/server-identity.ts";
import { parseScopedIpAddress } from "../../lib/net/ip-address.ts";
import { canonicalHost, hostsOverlap } from "../../lib/net/listen-address.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { HttpEndpoint, HttpHandler, HttpService } from "../../plugin/contract/site.ts";
import { streamOf, untilAccepted } from "../../transports/byte-stream-server.ts";
import { type BudgetedConnection, ConnectionBudget } from "../../transports/connection-budget.ts";
import { type OpenTcpSocket, type TcpSocket, withoutSystemCalls } from "../../transports/tcp-socket.ts";
import { TlsLayer } from "../../transports/tls-layer.ts";
import { errorCode, formatListenAddress, ListenError } from "../../transports/transport.ts";

type Handlers = ReadonlyMap<string, HttpHandler>;

/** All HTTP sockets of one server. */
export class HttpEndpoints {
  readonly #sockets = new Map<string, HttpSocket>();
  readonly #options: HttpEndpointOptions;

  constructor(options: HttpEndpointOptions) {
    this.#options = options;
  }

  /** Collects the handlers of a configuration that is being prepared. */
  prepare(): PreparedHttp {
    return new PreparedHttp(this);
  }

  /**
   * The canonical spelling of an address, which identifies its socket: `localhost:P` is `127.0.0.1:P`, and
   * `0.0.0.0:P` is `:P`.
   * @throws ListenError for a name that cannot be resolved
   */
  async place(address: string): Promise<string> {
    const { host, port } = splitAddress(address);
    const found = canonicalHost(isLiteral(host) ? host : await lookUp(host, port));
    return `${found.includes(":") ? `[${found}]` : found}:${port}`;
  }

  /** The address of the endpoint that takes connections to `host`, if there is one. */
  listenerAt(host: string, port: number): string | undefined {
    for (const [address, socket] of this.#sockets) {
      if (socket.port === port && hostsOverlap(splitAddress(address).host, host))
        return `the HTTP endpoint ${address}`;
    }
    return undefined;
  }

  async open(address: string): Promise<HttpSocket> {
    const known = this.#sockets.get(address);
    if (known !== undefined) return known;
    const {
      clock,
      onError,
      tcpSockets = async () => withoutSystemCalls,
      descriptors = Number.POSITIVE_INFINITY,
    } = this.#options;
    const maxConnections = Math.min(MAX_HTTP_CONNECTIONS, Math.max(8, Math.floor(descriptors / 16)));
    const openSocket = await tcpSockets();
    // From all addresses to one, or back: the present listener shares the port until it is known which of them stays.
    const { port } = splitAddress(address);
    const lenders = [...this.#sockets.values()].filter((other) => other.port === port && other.share(true));
    try {
      const beside = this.#options.sharesPorts === true || lenders.length > 0;
      const socket = await HttpSocket.open(address, openSocket, beside, {
        clock,
        onError,
        maxConnections,
      });
      this.#sockets.set(address, socket);
      return socket;
    } catch (error) {
      this.#endLending(lenders);
      throw error;
    }
  }

  /** Puts handlers into force and closes the unused sockets. */
  async commit(
    handlers: ReadonlyMap<string, Handlers>,
    identities: ReadonlyMap<string, IdentityHolder>,
  ): Promise<void> {
    for (const [address, socket] of this.#sockets) {
      // A request to a socket without handlers was meant for the listener that has the address now; without one it
      // gets the last handlers.
      socket.handlers = handlers.get(address) ?? handlersFor(socket, handlers);
      if (handlers.has(address)) socket.identity = identities.get(address);
      socket.inForce = true;
    }
    const fading: Promise<void>[] = [];
    for (const [address, socket] of this.#sockets) {
      if (handlers.has(address)) continue;
      this.#sockets.delete(address);
      fading.push(socket.fadeOut());
    }
    await Promise.all(fading);
    this.#endLending(this.#sockets.values());
  }

  /** Closes sockets that a refused configuration had opened. */
  async rollBack(): Promise<void> {
    const used = [...this.#sockets].filter(([, socket]) => socket.inForce).map(([address]) => address);
    await this.closeExcept(new Set(used));
  }

  async closeExcept(wanted: ReadonlySet<string>): Promise<void> {
    const closing: Promise<void>[] = [];
    for (const [address, socket] of this.#sockets) {
      if (wanted.has(address)) continue;
      this.#sockets.delete(address);
      closing.push(socket.close());
    }
    await Promise.all(closing);
    this.#endLending(this.#sockets.values());
  }

  #endLending(sockets: Iterable<HttpSocket>): void {
    if (this.#options.sharesPorts === true) return;
    for (const socket of sockets) socket.share(false);
  }
}

export interface HttpEndpointOptions {
  /** Guarded: errors of its timers go to `onError`. */
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
  /** Files and sockets that the process may have open; no bound unless given. */
  readonly descriptors?: number;
  /** Lets other processes share the same ports. */
  readonly sharesPorts?: boolean | undefined;
  /** Opens listening sockets; Node's own way unless given. */
  readonly tcpSockets?: () => Promise<OpenTcpSocket>;
}

const NO_HANDLERS: Handlers = new Map();

/** The handlers of the address that takes over the port of a closing one. */
function handlersFor({ port }: HttpSocket, handlers: ReadonlyMap<string, Handlers>): Handlers {
  for (const [address, found] of handlers) if (splitAddress(address).port === port) return found;
  return NO_HANDLERS;
}

/** Handlers of one configuration, collected while its plugins start. */
export class PreparedHttp implements HttpService {
  readonly #endpoints: HttpEndpoints;
  readonly #handlers = new Map<string, Map<string, HttpHandler>>();
  readonly #identities = new Map<string, IdentityHolder>();

  constructor(endpoints: HttpEndpoints) {
    this.#endpoints = endpoints;
  }

  async serve(
    address: string,
    path: string,
    handler: HttpHandler,
    identity?: IdentityHolder,
  ): Promise<HttpEndpoint> {
    const place = await this.#endpoints.place(address);
    const socket = await this.#endpoints.open(place);
    if (identity !== undefined) this.#identities.set(place, identity);
    const handlers = this.#handlers.get(place) ?? new Map<string, HttpHandler>();
    this.#handlers.set(place, handlers.set(path, handler));
    // No configuration in force answers there yet: /health is up before DNS is
    // (docs/spec/coredns-behaviour.md#starting).
    if (!socket.inForce) {
      socket.handlers = handlers;
      socket.identity = this.#identities.get(place);
    }
    return { host: socket.host, port: socket.port };
  }

  commit(): Promise<void> {
    return this.#endpoints.commit(this.#handlers, this.#identities);
  }
}

/** Milliseconds that a connection may be idle between requests, as in CoreDNS. */
const KEEP_ALIVE = 5_000;
/** Milliseconds in which a request has to arrive: a silent client must not keep probes out for longer. */
const REQUEST_TIMEOUT = 1_000;
/** Milliseconds for a TLS handshake, which takes a busy server longer. */
const HANDSHAKE_TIMEOUT = 3_000;
/** Above this number a new connection replaces the one that has been idle for the longest. */
const MAX_HTTP_CONNECTIONS = 256;

interface HttpSocketOptions {
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
  readonly maxConnections: number;
}

class HttpSocket {
  readonly host: string;
  readonly port: number;
  handlers: Handlers = NO_HANDLERS;
  /** For HTTPS; new connections are encrypted with it. */
  identity: IdentityHolder | undefined;
  /** Connections accepted so far. */
  #accepted = 0;
  /** Each connection ends with its next response. */
  #isFading = false;
  /** False while only a configuration that is being prepared uses it. */
  inForce = false;
  readonly #server: Server;
  readonly #socket: TcpSocket | undefined;
  readonly #clock: Clock;
  readonly #onError: (error: unknown) => void;
  readonly #budget: ConnectionBudget;
  readonly #connections = new WeakMap<Socket, HttpConnection>();
  readonly #tls = new TlsLayer({ identity: () => this.identity?.current, protocols: ["http/1.1"] });

  private constructor(
    server: Server,
    socket: TcpSocket | undefined,
    { clock, onError, maxConnections }: HttpSocketOptions,
  ) {
    this.#clock = clock;
    const { address, port } = server.address() as AddressInfo;
    this.host = address;
    this.port = port;
    this.#server = server;
    this.#socket = socket;
    this.#onError = onError;
    this.#budget = new ConnectionBudget({ maxConnections });
    // The HTTP server's own listener, called with connections that are ready for HTTP.
    const [begin] = server.listeners("connection");
    server.removeAllListeners("connection");
    server.on("connection", (accepted: Socket) => {
      this.#accepted++;
      this.#accept(accepted, (ready) => begin?.call(server, ready));
    });
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      const connection = this.#connections.get(request.socket);
      if (connection !== undefined) {
        this.#budget.heardFrom(connection);
        connection.begin(response);
      }
      this.#answer(request, response);
    });
    server.on("error", onError);
  }

  /** @param beside sockets on the same port that share it */
  static open(
    address: string,
    openSocket: OpenTcpSocket,
    beside: boolean,
    options: HttpSocketOptions,
  ): Promise<HttpSocket> {
    const { host, port } = splitAddress(address);
    const server = nodeHttp().createServer({
      requestTimeout: REQUEST_TIMEOUT,
      headersTimeout: REQUEST_TIMEOUT,
      keepAliveTimeout: KEEP_ALIVE,
      // As long as a request may take: each check wakes a process that has nothing to do.
      connectionsCheckingInterval: REQUEST_TIMEOUT,
    });
    return new Promise((resolve, reject) => {
      const refused = (error: Error): void =>
        reject(new ListenError(formatListenAddress("http", host, port), errorCode(error), error));
      const socket = openSocket({ host, port }, { reusePort: beside });
      const target =
        socket === undefined
          ? { port, exclusive: true, reusePort: beside, ...(host !== "" && { host }) }
          : { fd: socket.fd };
      server.once("error", refused);
      server.listen(target, () => {
        server.removeListener("error", refused);
        resolve(new HttpSocket(server, socket, options));
      });
    });
  }

  /** Starts or stops sharing the port with another of our sockets. */
  share(on: boolean): boolean {
    return this.#server.listening && this.#socket?.share(on) === true;
  }

  #accept(socket: Socket, begin: (ready: Socket) => void): void {
    const connection = new HttpConnection(socket);
    if (!this.#budget.admit(connection)) {
      socket.destroy();
      return;
    }
    socket.on("close", () => this.#budget.forget(connection));
    if (this.identity === undefined) {
      this.#connections.set(socket, connection);
      begin(socket);
      return;
    }
    socket.on("error", () => socket.destroy());
    const handshake = this.#clock.after(HANDSHAKE_TIMEOUT, () => socket.destroy());
    this.#tls.enter(streamOf(socket), ({ socket: secured }) => {
      handshake.cancel();
      this.#connections.set(secured, connection);
      begin(secured);
    });
  }

  /** Takes no new connections; pending requests are answered. */
  async fadeOut(): Promise<void> {
    if (this.#server.listening) this.#socket?.holdBack();
    await untilAccepted(() => this.#accepted);
    // The server's own `close` would hang up on idle connections, which may have a request on its way.
    this.#isFading = true;
    NetServer.prototype.close.call(this.#server);
    this.#clock.after(REQUEST_TIMEOUT, () => {
      this.#server.closeAllConnections();
      // Stops the check for slow connections.
      this.#server.close();
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    if (this.#isFading) response.shouldKeepAlive = false;
    const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
    const handler = this.handlers.get(path);
    if (handler === undefined) {
      response.writeHead(404).end("404 page not found\n");
      return;
    }
    try {
      handler(request, response);
    } catch (error) {
      this.#onError(error);
      if (!response.headersSent) response.writeHead(500);
      response.end();
    }
  }
}

class HttpConnection implements BudgetedConnection {
  budgetPlace: ListPlace<BudgetedConnection> | undefined;
  /** The number of sockets bounds them. */
  readonly octets = 0;
  awaitsAnswers = false;
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  begin(response: ServerResponse): void {
    this.awaitsAnswers = true;
    response.once("close", () => {
      this.awaitsAnswers = false;
    });
  }

  destroy(): void {
    this.#socket.destroy();
  }
}

function splitAddress(address: string): { host: string; port: number } {
  const separator = address.lastIndexOf(":");
  const host = address.slice(0, separator).replace(/^\[|\]$/g, "");
  return { host, port: Number(address.slice(separator + 1)) };
}

/** The address of a name: the IPv4 one if it has both, as in Go. */
async function lookUp(host: string, port: number): Promise<string> {
  const { lookup } = await import("node:dns/promises");
  try {
    const found = await lookup(host, { all: true });
    return (found.find(({ family }) => family === 4) ?? found[0])?.address ?? host;
  } catch (error) {
    const cause = error instanceof Error ? error : undefined;
    throw new ListenError(formatListenAddress("http", host, port), errorCode(error), cause);
  }
}

function isLiteral(host: string): boolean {
  return host === "" || parseScopedIpAddress(host) !== undefined;
}
