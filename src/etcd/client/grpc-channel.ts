/** Calls of gRPC to one endpoint, over one HTTP/2 connection, as far as etcd's API needs them. */

import { type ClientHttp2Stream, constants } from "node:http2";
import type { SecureContext } from "node:tls";
import {
  create,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { GatheredOctets } from "../../lib/collections/gathered-octets.ts";
import { GrpcStatus, lengthOf, PREFIX_OCTETS } from "../../lib/net/grpc-message.ts";
import { GrpcResponse } from "../../lib/net/grpc-response.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import { TimeoutWheel } from "../../lib/time/timeout-wheel.ts";
import type { PeerAddress } from "../../upstream/config/address.ts";
import { TlsClient } from "../../upstream/encrypted/tls-client.ts";
import { dialHttp2, Http2Connection } from "../../upstream/http2/http2-connection.ts";
import { EtcdError } from "./etcd-error.ts";

export interface GrpcChannelOptions {
  /** `http://host:port` or `https://host:port`. */
  readonly url: string;
  /** For `https`. */
  readonly context: SecureContext | undefined;
  readonly clock: Clock;
}

export type Metadata = Readonly<Record<string, string>>;

/** A method as its generated service describes it. */
export type Method<I extends DescMessage, O extends DescMessage> = DescMethod & {
  readonly input: I;
  readonly output: O;
};

export interface StreamReceiver<O extends DescMessage> {
  message(message: MessageShape<O>): void;
  /** Called once. */
  ended(error: EtcdError): void;
}

export interface GrpcStream<I extends DescMessage> {
  send(message: MessageInitShape<I>): void;
  close(): void;
}

/** Longer messages are refused: pages of keys are far shorter. */
const MAX_MESSAGE_OCTETS = 64 * 1024 * 1024;
/** Milliseconds between two pings. A connection that does not answer them is dead, whatever TCP reports. */
const PING_INTERVAL = 10_000;
/** Milliseconds of accuracy for the time-out of a handshake. */
const GRANULARITY = 100;

export class GrpcChannel {
  readonly url: string;
  readonly #options: GrpcChannelOptions;
  readonly #remote: PeerAddress;
  readonly #client: TlsClient | undefined;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #wheel: TimeoutWheel;
  readonly #connections = new Map<Http2Connection<CallStream>, Timer>();
  #current: Http2Connection<CallStream> | undefined;

  constructor(options: GrpcChannelOptions) {
    this.#options = options;
    this.url = options.url;
    this.#wheel = new TimeoutWheel(options.clock, GRANULARITY);
    const { protocol, hostname, port, host } = new URL(options.url);
    const isSecure = protocol === "https:";
    const name = hostname.replace(/^\[|\]$/g, "");
    this.#remote = { host: name, port: Number(port || (isSecure ? 443 : 80)), text: host };
    const { context } = options;
    if (isSecure && context !== undefined)
      this.#client = new TlsClient({ context, serverName: name, protocols: ["h2"] });
    this.#headers = {
      ":method": "POST",
      ":scheme": isSecure ? "https" : "http",
      ":authority": host,
      "content-type": "application/grpc",
      te: "trailers",
    };
  }

  /**
   * One request, one response.
   * @param timeout milliseconds
   * @throws EtcdError
   */
  unary<I extends DescMessage, O extends DescMessage>(
    method: Method<I, O>,
    request: MessageInitShape<I>,
    metadata: Metadata,
    timeout: number,
  ): Promise<MessageShape<O>> {
    return new Promise((resolve, reject) => {
      let reply: MessageShape<O> | undefined;
      const call = this.#open(method, metadata, {
        message: (message) => {
          reply ??= message;
        },
        ended: (error) => {
          timer.cancel();
          if (error.code === GrpcStatus.OK && reply !== undefined) resolve(reply);
          else reject(error);
        },
      });
      const timer = this.#options.clock.after(timeout, () =>
        call.fail(GrpcStatus.DEADLINE_EXCEEDED, `no answer within ${timeout} ms`),
      );
      call.end(encode(method, request));
    });
  }

  /** Messages in both directions until one side ends the stream. */
  open<I extends DescMessage, O extends DescMessage>(
    method: Method<I, O>,
    metadata: Metadata,
    receiver: StreamReceiver<O>,
  ): GrpcStream<I> {
    const call = this.#open(method, metadata, receiver);
    return { send: (message) => call.send(encode(method, message)), close: () => call.close() };
  }

  close(): void {
    for (const connection of [...this.#connections.keys()]) {
      const calls = [...connection.queries];
      this.#forget(connection);
      connection.close();
      for (const call of calls) call.lost("the connection ended");
    }
  }

  #open<O extends DescMessage>(
    method: Method<DescMessage, O>,
    metadata: Metadata,
    receiver: StreamReceiver<O>,
  ): CallStream {
    const connection = this.#connected();
    const call = new CallStream(this.url, connection, {
      message: (octets) => receiver.message(decode(method, octets, this.url)),
      ended: (error) => {
        connection.ended(call, this.#options.clock.now());
        receiver.ended(error);
      },
    });
    const headers = {
      ...this.#headers,
      ":path": `/${method.parent.typeName}/${method.name}`,
      ...metadata,
    };
    call.begin(connection.open(call, headers, false));
    return call;
  }

  #connected(): Http2Connection<CallStream> {
    if (this.#current?.isUsable === true) return this.#current;
    const { clock } = this.#options;
    const connection = new Http2Connection<CallStream>(
      {
        connected: () => undefined,
        lost: (_connection, reason, calls) => {
          this.#forget(connection);
          for (const call of calls) call.lost(reason);
        },
      },
      this.#remote,
      dialHttp2(this.#client, this.#remote, undefined),
      clock.now(),
      { wheel: this.#wheel },
    );
    this.#current = connection;
    this.#connections.set(connection, watchOver(connection, clock));
    return connection;
  }

  #forget(connection: Http2Connection<CallStream>): void {
    this.#connections.get(connection)?.cancel();
    this.#connections.delete(connection);
    if (this.#current === connection) this.#current = undefined;
  }
}

const READING = { readUnknownFields: false };

function encode<I extends DescMessage>(method: Method<I, DescMessage>, message: MessageInitShape<I>): Buffer {
  const octets = toBinary(method.input, create(method.input, message));
  const framed = Buffer.alloc(PREFIX_OCTETS + octets.length);
  framed.writeUInt32BE(octets.length, 1);
  framed.set(octets, PREFIX_OCTETS);
  return framed;
}

function decode<O extends DescMessage>(
  method: Method<DescMessage, O>,
  octets: Uint8Array,
  url: string,
): MessageShape<O> {
  try {
    return fromBinary(method.output, octets, READING);
  } catch (error) {
    throw new EtcdError(GrpcStatus.INTERNAL, `a malformed message: ${messageOf(error)}`, url);
  }
}

/** Ends a connection that answers no pings. */
function watchOver(connection: Http2Connection<CallStream>, clock: Clock): Timer {
  let unanswered = 0;
  return clock.every(PING_INTERVAL, () => {
    if (!connection.isOpen) return;
    if (unanswered > 0) {
      connection.fail("no sign of life");
      return;
    }
    unanswered++;
    connection.ping(() => {
      unanswered--;
    });
  });
}

/** Receives whole messages, then the end. */
interface CallReceiver {
  /** @throws EtcdError where the octets are not the expected message */
  message(octets: Uint8Array): void;
  ended(error: EtcdError): void;
}

/** One call on its own stream. */
class CallStream {
  readonly #url: string;
  readonly #connection: Http2Connection<CallStream>;
  readonly #receiver: CallReceiver;
  readonly #response = new GrpcResponse();
  #stream: ClientHttp2Stream | undefined;
  #held = new GatheredOctets();
  #fault: EtcdError | undefined;
  #hasEnded = false;

  constructor(url: string, connection: Http2Connection<CallStream>, receiver: CallReceiver) {
    this.#url = url;
    this.#connection = connection;
    this.#receiver = receiver;
  }

  begin(stream: ClientHttp2Stream): void {
    this.#stream = stream;
    stream.on("response", (headers) => {
      const problem = this.#response.head(headers);
      if (problem !== undefined) this.fail(problem.status, problem.message);
    });
    stream.on("trailers", (trailers) => this.#response.tail(trailers));
    stream.on("data", (octets: Buffer) => this.#take(octets));
    stream.on("error", (error) => {
      if (!this.#hasLostConnection)
        this.#fault ??= new EtcdError(GrpcStatus.UNAVAILABLE, error.message, this.#url);
    });
    stream.on("close", () => {
      if (!this.#hasLostConnection) this.#end();
    });
  }

  /** The connection then calls {@link lost}, with the reason. */
  get #hasLostConnection(): boolean {
    return this.#connection.isLost || this.#connection.isEnding;
  }

  send(framed: Uint8Array): void {
    if (this.#stream?.writable === true) this.#stream.write(framed);
  }

  end(framed: Uint8Array): void {
    this.#stream?.end(framed);
  }

  fail(code: number, reason: string): void {
    this.#fault ??= new EtcdError(code, reason, this.#url);
    this.close();
  }

  close(): void {
    this.#stream?.close(constants.NGHTTP2_CANCEL);
  }

  /** Called when its connection has ended. */
  lost(reason: string): void {
    this.#fault ??= new EtcdError(GrpcStatus.UNAVAILABLE, reason, this.#url);
    this.#end();
  }

  #take(octets: Uint8Array): void {
    if (this.#fault !== undefined) return;
    this.#held.add(octets);
    let rest = this.#held.octets;
    while (rest.length >= PREFIX_OCTETS) {
      const length = lengthOf(rest);
      if (rest[0] !== 0 || length > MAX_MESSAGE_OCTETS) {
        this.fail(GrpcStatus.UNKNOWN, "a message that is compressed or too long");
        return;
      }
      if (rest.length < PREFIX_OCTETS + length) break;
      try {
        this.#receiver.message(rest.subarray(PREFIX_OCTETS, PREFIX_OCTETS + length));
      } catch (error) {
        if (!(error instanceof EtcdError)) throw error;
        this.fail(error.code, error.reason);
        return;
      }
      rest = rest.subarray(PREFIX_OCTETS + length);
    }
    if (rest.length === this.#held.length) return;
    // The keys and values of the messages are views of the octets so far.
    this.#held = new GatheredOctets();
    this.#held.add(rest);
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const { status, reason } = this.#response;
    this.#receiver.ended(
      this.#fault ??
        (status === undefined
          ? new EtcdError(GrpcStatus.UNAVAILABLE, "the connection ended", this.#url)
          : new EtcdError(status, reason || "no reason given", this.#url)),
    );
  }
}
