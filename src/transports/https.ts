/**
 * DNS over HTTPS (RFC 8484): HTTP/2 and HTTP/1.1 on one port, as the client negotiates (ALPN). Without TLS it is only HTTP/1.1, for
 * use behind a proxy.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { nodeHttp } from "../lib/files/node-modules.ts";
import type { Clock, Timer } from "../lib/time/clock.ts";
import {
  type ByteStream,
  type ByteStreamServerOptions,
  listenForStreams,
  type StreamUser,
} from "./byte-stream-server.ts";
import { type ConnectionAccount, UNNOTICED } from "./connection-budget.ts";
import type { HttpObserver, HttpTimeouts } from "./http-options.ts";
import { HttpQueries, type HttpResponse, MAX_BODY, readTarget } from "./http-queries.ts";
import { DohRequests, DohStream } from "./http2/doh-stream.ts";
import { Http2Sessions } from "./http2/http2-session.ts";
import { withTraceHeaders } from "./traced-endpoint.ts";
import { errorCode, type ListenTarget, type MessageReceiver, type Transport } from "./transport.ts";

export interface HttpsOptions
  extends Omit<ByteStreamServerOptions, "name" | "serve" | "handshakeTimeout">,
    HttpObserver {
  readonly timeouts: () => HttpTimeouts;
  /** Streams of one HTTP/2 connection; 0 for the default. */
  readonly maxStreams?: (() => number) | undefined;
  /** Called for each response. */
  readonly onResponse?: ((status: number) => void) | undefined;
}

/** Default for the streams of one HTTP/2 connection. */
const MAX_STREAMS = 250;
/** Requests of one HTTP/1.1 connection that may wait for their responses. */
const MAX_PIPELINED = 100;
/** Node's objects for a waiting request, with its header. */
const REQUEST_OBJECTS_OCTETS = 4096;

/**
 * Opens a listening socket and hands the messages of all requests to `receiver`.
 * @throws ListenError
 */
export async function listenHttps(
  target: ListenTarget,
  receiver: MessageReceiver,
  options: HttpsOptions,
): Promise<Transport> {
  const { clock, timeouts, onResponse } = options;
  const wallTime = (): number => clock.wallTime();
  const queries = new HttpQueries({ receiver, wallTime, onResponse });
  const http1 = new Http1Server(queries, options);
  const requests = new DohRequests({ receiver, wallTime, onResponse });
  const http2 = new Http2Sessions({
    ...options,
    maxStreams: () => options.maxStreams?.() || MAX_STREAMS,
    // `dnsperf` only reads the last response in a TLS record (its issue 240).
    separateResponses: true,
    open: (home, id) => new DohStream(home, id, requests),
  });
  return listenForStreams(target, {
    ...options,
    name: "https",
    handshakeTimeout: () => timeouts().read,
    serve(stream, account) {
      const isHttp2 = "alpnProtocol" in stream.socket && stream.socket.alpnProtocol === "h2";
      return isHttp2 ? http2.serve(stream, account) : http1.serve(stream, account);
    },
  });
}

type Http1Options = HttpObserver & {
  readonly clock: Clock;
  readonly timeouts: () => HttpTimeouts;
};

const BAD_REQUEST = "400 Bad Request";
const TOO_LARGE = "431 Request Header Fields Too Large";

/** HTTP/1.1 for all connections of a listener, with Node's parser. */
class Http1Server {
  readonly #server: Server;
  readonly #options: Http1Options;
  readonly #connections = new WeakMap<Socket, Http1Connection>();

  constructor(queries: HttpQueries, options: Http1Options) {
    this.#options = options;
    // Node's own timeouts need a listening socket, which this server does not have.
    this.#server = nodeHttp().createServer({ keepAliveTimeout: 0 }, (request, response) => {
      this.#connections.get(request.socket)?.take(request, response, queries);
    });
    this.#server.on("clientError", (error, socket) => {
      // A client that disconnects is not an error.
      if (errorCode(error) !== "ECONNRESET") options.onFault?.();
      const status = errorCode(error) === "HPE_HEADER_OVERFLOW" ? TOO_LARGE : BAD_REQUEST;
      if (socket.writable) socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\n\r\n`);
      else socket.destroy();
    });
  }

  serve(stream: ByteStream, account: ConnectionAccount): StreamUser {
    const connection = new Http1Connection(stream, account, this.#options);
    this.#connections.set(stream.socket, connection);
    this.#server.emit("connection", stream.socket);
    return connection;
  }
}

class Http1Connection implements StreamUser {
  readonly #stream: ByteStream;
  readonly #account: ConnectionAccount;
  readonly #options: Http1Options;
  /** Requests without a response yet: clients may pipeline. */
  #waiting = 0;
  /** Octets of unread responses and of incomplete requests. */
  #held = 0;
  #isEnding = false;
  #timer: Timer | undefined;

  constructor(stream: ByteStream, account: ConnectionAccount, options: Http1Options) {
    this.#stream = stream;
    this.#account = account;
    this.#options = options;
    this.#within(options.timeouts().read, "request");
    stream.socket.on("close", () => this.#timer?.cancel());
  }

  get awaitsAnswers(): boolean {
    return this.#waiting > 0;
  }

  stopReading(): void {
    this.#isEnding = true;
    if (this.#waiting === 0) this.#stream.socket.destroy();
  }

  take(request: IncomingMessage, response: ServerResponse, queries: HttpQueries): void {
    const { local } = this.#stream;
    const client = withTraceHeaders(this.#stream.client, request.headers);
    let unsent = 0;
    if (++this.#waiting > MAX_PIPELINED) {
      this.#account.giveUp();
      return;
    }
    this.#hold(0);
    this.#within(this.#options.timeouts().read, "request");
    const answer: HttpResponse = {
      get isOpen() {
        return !response.destroyed && !response.headersSent;
      },
      write: (status, headers, body) => {
        this.#within(this.#options.timeouts().write, "response");
        if (this.#stream.socket.destroyed) return;
        if (this.#held > 0 && this.#held + body.length > this.#account.unsentLimit) {
          this.#account.giveUp();
          return;
        }
        if (this.#isEnding) response.setHeader("connection", "close");
        response.writeHead(status, { ...headers });
        this.#hold(body.length);
        this.#account.notePassed(body.length);
        unsent = body.length;
        response.end(body);
      },
    };
    // Emitted in any case, also when the connection breaks.
    response.on("close", () => {
      this.#waiting--;
      this.#hold(-unsent);
      if (this.#waiting > 0 || this.#stream.socket.destroyed) return;
      if (this.#isEnding) this.#stream.socket.end();
      else this.#within(this.#options.timeouts().idle);
    });
    // Servers also accept absolute URLs (RFC 9112 section 3.2.2).
    const wanted = readTarget(request.method, request.url?.replace(/^https?:\/\/[^/?]*/i, ""));
    if (wanted.kind === "body") {
      const holder: BodyHolder = {
        mayHold: (octets) => this.#account.takes(octets) && this.#mayHold(octets),
        hold: (octets) => {
          if (octets > 0) this.#account.notePassed(octets);
          this.#hold(octets);
        },
      };
      readBody(request, holder, (body) => {
        this.#isWhole();
        if (body === undefined) queries.refuse(400, answer);
        else queries.ask(body, client, local, answer);
      });
      return;
    }
    this.#isWhole();
    request.resume();
    if (wanted.kind === "refused") queries.refuse(wanted.status, answer);
    else queries.ask(wanted.message, client, local, answer);
  }

  /** Whether there is memory for this many more octets: a client that reads nothing gets no more. */
  #mayHold(octets: number): boolean {
    const account = this.#account;
    return this.#held === 0 || (this.#held + octets <= account.unsentLimit && account.hasRoomFor(octets));
  }

  #hold(octets: number): void {
    this.#held += octets;
    // The connection itself accounts for one request.
    const objects = Math.max(0, this.#waiting - 1) * REQUEST_OBJECTS_OCTETS;
    this.#account.holds(this.#held + objects, this.#stream.socket.writableLength > UNNOTICED);
  }

  /** The query may take any time. */
  #isWhole(): void {
    this.#account.heardFrom();
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** @param what the connection waits for; nothing between two requests */
  #within(milliseconds: number, what?: "request" | "response"): void {
    const { clock, onTimeout } = this.#options;
    this.#timer?.cancel();
    const timer = clock.after(milliseconds, () =>
      // Timers run before sockets are read: after a pause of the process, data that arrived in time is processed first.
      setImmediate(() => {
        const { socket } = this.#stream;
        if (this.#timer !== timer || socket.destroyed) return;
        if (what !== undefined) onTimeout?.(what);
        // TLS sends close_notify, unless the client reads nothing anyway.
        if (socket.writableLength > 0) socket.destroy();
        else socket.destroySoon();
      }),
    );
    this.#timer = timer;
  }
}

/** Accounts for the memory of incomplete bodies. */
interface BodyHolder {
  mayHold(octets: number): boolean;
  /** This many octets more, or fewer. */
  hold(octets: number): void;
}

/**
 * @param done receives the body, or nothing if it is longer than any message or than there is room for; not called if the client
 * gives up
 */
function readBody(
  request: IncomingMessage,
  holder: BodyHolder,
  done: (body: Uint8Array | undefined) => void,
): void {
  let chunks: Buffer[] = [];
  let octets = 0;
  let held = 0;
  let isDone = false;
  const finish = (body: Uint8Array | undefined): void => {
    isDone = true;
    chunks = [];
    letGo();
    done(body);
  };
  const letGo = (): void => {
    holder.hold(-held);
    held = 0;
  };
  request.on("data", (chunk: Buffer) => {
    if (isDone) return;
    octets += chunk.length;
    if (octets > MAX_BODY || !holder.mayHold(chunk.length)) finish(undefined);
    else {
      chunks.push(chunk);
      held += chunk.length;
      holder.hold(chunk.length);
    }
  });
  request.on("end", () => {
    if (!isDone) finish(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
  });
  request.on("close", letGo);
}
