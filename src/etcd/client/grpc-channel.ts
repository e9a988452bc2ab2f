/** gRPC over one HTTP/2 connection to one endpoint, as far as etcd's API needs it. */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type SecureClientSessionOptions,
} from "node:http2";
import { PREFIX_OCTETS, textOfStatus } from "../../lib/net/grpc-message.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import { EtcdError, StatusCode } from "./etcd-error.ts";

/** PEM texts. */
export interface TlsFiles {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

export interface GrpcChannelOptions {
  /** `http://host:port` or `https://host:port`. */
  readonly url: string;
  readonly tls: TlsFiles | undefined;
  readonly clock: Clock;
}

export type Metadata = Readonly<Record<string, string>>;

export interface StreamReceiver {
  message(octets: Uint8Array): void;
  /** Called once. */
  ended(error: EtcdError): void;
}

export interface GrpcStream {
  send(message: Uint8Array): void;
  close(): void;
}

/** Longer messages are refused: pages of keys are far shorter. */
const MAX_MESSAGE_OCTETS = 64 * 1024 * 1024;
/** Milliseconds between two pings. A connection that does not answer them is dead, whatever TCP reports. */
const PING_INTERVAL = 10_000;

export class GrpcChannel {
  readonly #options: GrpcChannelOptions;
  #session: ClientHttp2Session | undefined;

  constructor(options: GrpcChannelOptions) {
    this.#options = options;
  }

  get url(): string {
    return this.#options.url;
  }

  /**
   * One request, one response.
   * @param timeout milliseconds
   * @throws EtcdError
   */
  unary(path: string, message: Uint8Array, metadata: Metadata, timeout: number): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      let reply: Uint8Array | undefined;
      const stream = this.#open(path, metadata, {
        message: (octets) => {
          reply ??= octets;
        },
        ended: (error) => {
          timer.cancel();
          if (error.code === StatusCode.OK && reply !== undefined) resolve(reply);
          else reject(error);
        },
      });
      const timer = this.#options.clock.after(timeout, () =>
        stream.fail(StatusCode.DEADLINE_EXCEEDED, `no answer within ${timeout} ms`),
      );
      stream.end(message);
    });
  }

  /** Messages in both directions until one side ends the stream. */
  open(path: string, metadata: Metadata, receiver: StreamReceiver): GrpcStream {
    return this.#open(path, metadata, receiver);
  }

  close(): void {
    this.#session?.destroy();
    this.#session = undefined;
  }

  #open(path: string, metadata: Metadata, receiver: StreamReceiver): Http2Stream {
    const stream = this.#connected().request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
      ...metadata,
    });
    return new Http2Stream(stream, this.url, receiver);
  }

  #connected(): ClientHttp2Session {
    const known = this.#session;
    if (known !== undefined && !known.closed && !known.destroyed) return known;
    const { url, tls, clock } = this.#options;
    const options: SecureClientSessionOptions = { ...tls };
    const session = connect(url, options);
    // Errors reach callers through their streams; the session has no error handler of its own.
    session.on("error", () => undefined);
    session.on("goaway", () => this.#forget(session));
    session.on("close", () => this.#forget(session));
    watchOver(session, clock);
    this.#session = session;
    return session;
  }

  #forget(session: ClientHttp2Session): void {
    if (this.#session === session) this.#session = undefined;
  }
}

/** Closes a connection that answers no pings. */
function watchOver(session: ClientHttp2Session, clock: Clock): void {
  let unanswered = 0;
  const timer: Timer = clock.every(PING_INTERVAL, () => {
    if (session.connecting || unanswered > 0) {
      session.destroy(new Error("no sign of life"), constants.NGHTTP2_CANCEL);
      return;
    }
    unanswered++;
    session.ping(() => {
      unanswered--;
    });
  });
  session.on("close", () => timer.cancel());
}

class Http2Stream implements GrpcStream {
  readonly #stream: ClientHttp2Stream;
  readonly #url: string;
  readonly #receiver: StreamReceiver;
  #held: Buffer = Buffer.alloc(0);
  #status: EtcdError | undefined;
  #hasEnded = false;

  constructor(stream: ClientHttp2Stream, url: string, receiver: StreamReceiver) {
    this.#stream = stream;
    this.#url = url;
    this.#receiver = receiver;
    stream.on("response", (headers) => this.#takeHeaders(headers));
    stream.on("trailers", (headers) => this.#takeStatus(headers));
    stream.on("data", (octets: Buffer) => this.#take(octets));
    stream.on("error", (error) => this.#takeError(error));
    stream.on("close", () => this.#end());
  }

  send(message: Uint8Array): void {
    if (!this.#stream.writable) return;
    this.#stream.write(frame(message));
  }

  end(message: Uint8Array): void {
    this.#stream.end(frame(message));
  }

  fail(code: number, reason: string): void {
    this.#status ??= new EtcdError(code, reason, this.#url);
    this.close();
  }

  close(): void {
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  #takeHeaders(headers: IncomingHttpHeaders): void {
    const status = headers[":status"];
    if (Number(status) !== 200 && headers["grpc-status"] === undefined) {
      this.fail(StatusCode.UNAVAILABLE, `HTTP status ${status}: no etcd listens there`);
    } else {
      this.#takeStatus(headers);
    }
  }

  #takeStatus(headers: IncomingHttpHeaders): void {
    const code = headers["grpc-status"];
    if (code === undefined) return;
    this.#status ??= new EtcdError(
      Number(code),
      textOfStatus(headers["grpc-message"]) || "no reason given",
      this.#url,
    );
  }

  #takeError(error: Error): void {
    this.#status ??= new EtcdError(StatusCode.UNAVAILABLE, error.message, this.#url);
  }

  #take(octets: Buffer): void {
    let held = this.#held.length === 0 ? octets : Buffer.concat([this.#held, octets]);
    while (held.length >= PREFIX_OCTETS) {
      const length = held.readUInt32BE(1);
      if (held[0] !== 0 || length > MAX_MESSAGE_OCTETS) {
        this.fail(StatusCode.UNKNOWN, "a message that is compressed or too long");
        return;
      }
      if (held.length < PREFIX_OCTETS + length) break;
      this.#receiver.message(held.subarray(PREFIX_OCTETS, PREFIX_OCTETS + length));
      held = held.subarray(PREFIX_OCTETS + length);
    }
    this.#held = held;
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#receiver.ended(
      this.#status ?? new EtcdError(StatusCode.UNAVAILABLE, "the connection ended", this.#url),
    );
  }
}

function frame(message: Uint8Array): Buffer {
  const framed = Buffer.alloc(PREFIX_OCTETS + message.length);
  framed.writeUInt32BE(message.length, 1);
  framed.set(message, PREFIX_OCTETS);
  return framed;
}
