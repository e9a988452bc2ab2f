/**
 * HTTP/2 on a byte stream, for DNS over HTTPS and over gRPC: one session, with its bounds. What arrives on a stream is for its user.
 * Node itself ends sessions that reset streams in quick succession or send rubbish.
 */
import type { IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import type { Clock, Timer } from "../lib/clock.ts";
import { nodeHttp2 } from "../lib/node-modules.ts";
import type { ByteStream, StreamUser } from "./byte-stream-server.ts";

export interface HttpTimeouts {
  /** Milliseconds until a request is whole. */
  readonly read: number;
  /** Milliseconds until the client has taken a response. */
  readonly write: number;
  /** Milliseconds between two requests; `Infinity` for no end. */
  readonly idle: number;
}

/** What clients of HTTP were found at; each may be told to whoever counts. */
export interface HttpObserver {
  /** The connection ended because of what its client sent: broken frames, too many of a kind, too large headers. */
  readonly onFault?: (() => void) | undefined;
  /** A request did not come to its end in time, or a response was not taken in time. */
  readonly onTimeout?: ((what: "request" | "response") => void) | undefined;
}

export interface Http2ConnectionOptions extends HttpObserver {
  readonly clock: Clock;
  /** Asked anew for each connection. */
  readonly maxStreams: () => number;
  readonly timeouts: () => HttpTimeouts;
  readonly onStream: (
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    connection: Http2Connection,
  ) => void;
}

/** Megabytes that a session may hold for its client: past them it takes no new streams. */
const MAX_SESSION_MEMORY = 2;
const MAX_HEADER_OCTETS = 16 * 1024;

export class Http2Connection implements StreamUser {
  readonly stream: ByteStream;
  readonly #options: Http2ConnectionOptions;
  readonly #session: ServerHttp2Session;
  readonly #heardFrom: () => void;
  /** When the streams that are open have to be done, by the clock. */
  readonly #deadlines = new Map<ServerHttp2Stream, number>();
  #timer: Timer | undefined;
  #idleSince: number;

  constructor(stream: ByteStream, options: Http2ConnectionOptions, heardFrom: () => void) {
    this.stream = stream;
    this.#options = options;
    this.#heardFrom = heardFrom;
    this.#idleSince = options.clock.now();
    this.#session = nodeHttp2().performServerHandshake(stream.socket, {
      maxSessionMemory: MAX_SESSION_MEMORY,
      maxHeaderListPairs: 64,
      settings: {
        enablePush: false,
        maxConcurrentStreams: options.maxStreams(),
        maxHeaderListSize: MAX_HEADER_OCTETS,
      },
    });
    // A fault of the session costs this connection.
    this.#session.on("error", () => {
      options.onFault?.();
      stream.socket.destroy();
    });
    this.#session.on("close", () => this.#timer?.cancel());
    this.#session.on("stream", (opened, headers) => this.#onStream(opened, headers));
    this.#watch();
  }

  get awaitsAnswers(): boolean {
    return this.#deadlines.size > 0;
  }

  stopReading(): void {
    this.#session.close();
  }

  /** The request on a stream is whole; the query that it holds may take its time. */
  requestIsWhole(stream: ServerHttp2Stream): void {
    this.#heardFrom();
    if (this.#deadlines.has(stream)) this.#deadlines.set(stream, Number.POSITIVE_INFINITY);
  }

  /** The response is on its way. */
  responseIsSent(stream: ServerHttp2Stream): void {
    if (this.#deadlines.has(stream))
      this.#deadlines.set(stream, this.#options.clock.now() + this.#options.timeouts().write);
  }

  #onStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const { clock, timeouts, onStream } = this.#options;
    this.#deadlines.set(stream, clock.now() + timeouts().read);
    stream.on("error", () => stream.destroy());
    stream.on("close", () => {
      this.#deadlines.delete(stream);
      this.#idleSince = clock.now();
    });
    onStream(stream, headers, this);
  }

  /** One timer looks after all streams: a deadline may be late by a quarter of the shortest time. */
  #watch(): void {
    const { clock, timeouts, onTimeout } = this.#options;
    const { read, write, idle } = timeouts();
    this.#timer = clock.after(Math.min(read, write, idle) / 4, () => {
      const now = clock.now();
      for (const [stream, deadline] of this.#deadlines) {
        if (deadline > now) continue;
        onTimeout?.(stream.headersSent ? "response" : "request");
        this.#deadlines.delete(stream);
        stream.close(nodeHttp2().constants.NGHTTP2_CANCEL);
      }
      if (this.#deadlines.size === 0 && now - this.#idleSince >= idle) this.#giveUp();
      if (!this.stream.socket.destroyed) this.#watch();
    });
  }

  /** Says goodbye, and the next time hangs up on who has not heard it. */
  #giveUp(): void {
    if (this.#session.closed) this.stream.socket.destroy();
    else this.#session.close();
  }
}
