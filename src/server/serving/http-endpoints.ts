/**
 * HTTP listeners of the plugins. A socket outlives a reload that wants it again; which handlers answer changes in one step
 * when the new configuration comes into force, so that no probe meets a closed port.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { nodeHttp } from "../../lib/node-modules.ts";
import type { HttpEndpoint, HttpHandler, HttpService } from "../../plugin/site.ts";
import { errorCode, formatListenAddress, ListenError } from "../../transports/transport.ts";

type Handlers = ReadonlyMap<string, HttpHandler>;

/** All HTTP sockets of one server. */
export class HttpEndpoints {
  readonly #sockets = new Map<string, HttpSocket>();
  readonly #onError: (error: unknown) => void;

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  /** A place for the handlers of a configuration that is being made. */
  prepare(): PreparedHttp {
    return new PreparedHttp(this);
  }

  async open(address: string): Promise<HttpSocket> {
    const known = this.#sockets.get(address);
    if (known !== undefined) return known;
    const socket = await HttpSocket.open(address, this.#onError);
    this.#sockets.set(address, socket);
    return socket;
  }

  /** Puts handlers into force and closes the sockets that none is for. */
  async commit(handlers: ReadonlyMap<string, Handlers>): Promise<void> {
    for (const [address, socket] of this.#sockets) {
      socket.handlers = handlers.get(address) ?? NO_HANDLERS;
      socket.inForce = true;
    }
    await this.closeExcept(new Set(handlers.keys()));
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
  }
}

const NO_HANDLERS: Handlers = new Map();

/** Handlers of one configuration, collected while its plugins start. */
export class PreparedHttp implements HttpService {
  readonly #endpoints: HttpEndpoints;
  readonly #handlers = new Map<string, Map<string, HttpHandler>>();

  constructor(endpoints: HttpEndpoints) {
    this.#endpoints = endpoints;
  }

  async serve(address: string, path: string, handler: HttpHandler): Promise<HttpEndpoint> {
    const socket = await this.#endpoints.open(address);
    const handlers = this.#handlers.get(address) ?? new Map<string, HttpHandler>();
    this.#handlers.set(address, handlers.set(path, handler));
    // No configuration in force answers there yet: /health is up before DNS is (CoreDNS facts 1.2).
    if (!socket.inForce) socket.handlers = handlers;
    return { host: socket.host, port: socket.port };
  }

  commit(): Promise<void> {
    return this.#endpoints.commit(this.#handlers);
  }
}

/** Milliseconds; CoreDNS facts 2.18 and 2.22. */
const HTTP_TIMEOUT = 5_000;
const MAX_HTTP_CONNECTIONS = 256;

class HttpSocket {
  readonly host: string;
  readonly port: number;
  handlers: Handlers = NO_HANDLERS;
  /** False while only a configuration that is being made wants it. */
  inForce = false;
  readonly #server: Server;
  readonly #onError: (error: unknown) => void;

  private constructor(server: Server, onError: (error: unknown) => void) {
    const { address, port } = server.address() as AddressInfo;
    this.host = address;
    this.port = port;
    this.#server = server;
    this.#onError = onError;
    server.on("request", (request: IncomingMessage, response: ServerResponse) =>
      this.#answer(request, response),
    );
    server.on("error", onError);
  }

  static open(address: string, onError: (error: unknown) => void): Promise<HttpSocket> {
    const separator = address.lastIndexOf(":");
    const host = address.slice(0, separator).replace(/^\[|\]$/g, "");
    const port = Number(address.slice(separator + 1));
    const server = nodeHttp().createServer({
      requestTimeout: HTTP_TIMEOUT,
      headersTimeout: HTTP_TIMEOUT,
      keepAliveTimeout: HTTP_TIMEOUT,
      connectionsCheckingInterval: 1_000,
    });
    server.maxConnections = MAX_HTTP_CONNECTIONS;
    return new Promise((resolve, reject) => {
      server.once("error", (error) =>
        reject(new ListenError(formatListenAddress("http", host, port), errorCode(error), error)),
      );
      server.listen({ port, exclusive: true, ...(host !== "" && { host }) }, () => {
        server.removeAllListeners("error");
        resolve(new HttpSocket(server, onError));
      });
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
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
