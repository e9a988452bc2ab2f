/**
 * DNS over gRPC: the unary method `Query` of `coredns.dns.DnsService` (docs/spec/coredns-behaviour.md#transports), over TLS or with
 * prior knowledge of HTTP/2 in the clear.
 */
import { copyOctets } from "../dns/octets.ts";
import {
  GrpcProblem,
  GrpcStatus,
  lengthOf,
  MAX_PACKET,
  PREFIX_OCTETS,
  readPacket,
  statusText,
  writePacketHead,
} from "../lib/net/grpc-message.ts";
import { type ByteStreamServerOptions, listenForStreams } from "./byte-stream-server.ts";
import type { HttpObserver, HttpTimeouts } from "./http-options.ts";
import { encodeFields } from "./http2/hpack-encoder.ts";
import { Http2Sessions } from "./http2/http2-session.ts";
import { Http2Stream, type StreamHome } from "./http2/http2-stream.ts";
import type { RequestHead } from "./http2/request-head.ts";
import type { ListenTarget, MessageReceiver, Rejection, ReplyPort, Transport } from "./transport.ts";

export interface GrpcOptions
  extends Omit<ByteStreamServerOptions, "name" | "serve" | "handshakeTimeout">,
    HttpObserver {
  /** Simultaneous streams of a connection, 0 for the maximum of HTTP/2. */
  readonly maxStreams: () => number;
  readonly timeouts: () => Pick<HttpTimeouts, "read" | "write">;
}

const SERVICE = "coredns.dns.DnsService";
const METHOD = `/${SERVICE}/Query`;
const UNBOUNDED_STREAMS = 0x7fff_ffff;

/**
 * Opens a listening socket and hands the messages of all calls to `receiver`.
 * @throws ListenError
 */
export async function listenGrpc(
  target: ListenTarget,
  receiver: MessageReceiver,
  options: GrpcOptions,
): Promise<Transport> {
  const sessions = new Http2Sessions({
    ...options,
    maxStreams: () => options.maxStreams() || UNBOUNDED_STREAMS,
    // Clients keep their connections open: idle ones are only closed to make room.
    timeouts: () => ({ ...options.timeouts(), idle: Number.POSITIVE_INFINITY }),
    open: (home, id) => new Call(home, id, receiver),
  });
  return listenForStreams(target, {
    ...options,
    name: "grpc",
    handshakeTimeout: () => options.timeouts().read,
    serve: (stream, account) => sessions.serve(stream, account),
  });
}

const CONTENT_TYPE = ["content-type", "application/grpc"] as const;
const OK_BLOCK = encodeFields([[":status", 200], CONTENT_TYPE]);
const OK_TRAILERS = encodeFields([
  ["grpc-status", GrpcStatus.OK],
  ["grpc-message", ""],
]);
/** Octets of a header list that every client accepts. */
const MAX_STATUS_TEXT = 4096;

/** One call, and the way back to its client. */
class Call extends Http2Stream implements ReplyPort {
  protected readonly maxBody = MAX_PACKET;
  readonly #receiver: MessageReceiver;
  #query: Uint8Array = NO_OCTETS;
  #octets: Uint8Array = NO_OCTETS;
  #isHead = false;

  constructor(home: StreamHome, id: number, receiver: MessageReceiver) {
    super(home, id);
    this.#receiver = receiver;
  }

  begin(head: RequestHead): void {
    const refusal = httpRefusal(head);
    if (refusal !== undefined) {
      this.#isHead = head.method === "HEAD";
      this.refuse(refusal);
      return;
    }
    const path = head.pathText;
    if (path !== METHOD) {
      this.#fail(unknownMethod(path));
      return;
    }
    this.joinTrace(head);
    if (this.isWhole) this.whole(NO_OCTETS);
  }

  keep(): ReplyPort {
    return this;
  }

  buffer(size: number): Uint8Array {
    this.#octets = Buffer.allocUnsafe(size);
    return this.#octets;
  }

  send(length: number): void {
    this.#respond(this.#octets.subarray(0, length));
  }

  /** A dropped query is returned to the client as it was. */
  drop(): void {
    this.#respond(this.#query);
  }

  reject(_rejection: Rejection): void {
    if (this.home.settled(this)) this.#fail(new GrpcProblem(GrpcStatus.UNKNOWN, "dns request rejected"));
  }

  protected whole(body: Uint8Array): void {
    const message = readPacket(body);
    if (message instanceof GrpcProblem) this.#fail(message);
    else if (message.length < 12)
      this.#fail(new GrpcProblem(GrpcStatus.UNKNOWN, "dns: buffer size too small"));
    else if (((message[2] as number) & 0x80) !== 0)
      this.#fail(new GrpcProblem(GrpcStatus.UNKNOWN, "dns request rejected"));
    else {
      // Lent octets are copied: they are the answer if the query is dropped.
      this.#query = copyOctets(message, 0, message.length);
      this.home.asked(this);
      this.#receiver.receive(message, message.length, this);
    }
  }

  protected tooLong(beginning: Uint8Array): void {
    const length = beginning.length < PREFIX_OCTETS ? MAX_PACKET + 1 : lengthOf(beginning);
    this.#fail(
      new GrpcProblem(
        GrpcStatus.RESOURCE_EXHAUSTED,
        `grpc: received message larger than max (${length} vs. ${MAX_PACKET})`,
      ),
    );
  }

  protected refused(status: number): void {
    const { block, body } = HTTP_REFUSALS[status] ?? UNSUPPORTED;
    this.home.respond(this, block, this.#isHead ? NO_OCTETS : body);
  }

  #respond(message: Uint8Array): void {
    if (!this.home.settled(this)) return;
    const packet = Buffer.concat([writePacketHead(message.length), message]);
    this.home.respond(this, OK_BLOCK, packet, OK_TRAILERS);
  }

  #fail({ status, message }: GrpcProblem): void {
    const block = encodeFields([
      [":status", 200],
      CONTENT_TYPE,
      ["grpc-status", status],
      ["grpc-message", statusText(message).slice(0, MAX_STATUS_TEXT)],
    ]);
    this.home.respond(this, block, NO_OCTETS);
  }
}

const NO_OCTETS = new Uint8Array(0);

/** gRPC clients show the text with their own error, and so do browsers. */
function httpRefusalOf(
  status: number,
  text: string,
): { readonly block: Uint8Array; readonly body: Uint8Array } {
  const body = Buffer.from(`${text}\n`);
  const block = encodeFields([
    [":status", status],
    ["content-type", "text/plain; charset=utf-8"],
    ["content-length", body.length],
  ]);
  return { block, body };
}

const UNSUPPORTED = httpRefusalOf(415, "only application/grpc is understood here");
const HTTP_REFUSALS: Readonly<Record<number, typeof UNSUPPORTED>> = {
  405: httpRefusalOf(405, "gRPC calls are POST requests"),
  415: UNSUPPORTED,
  431: httpRefusalOf(431, "the header is too large"),
};

/** The HTTP status for a request that is not a gRPC call. */
function httpRefusal(head: RequestHead): number | undefined {
  if (head.isTooLarge) return 431;
  if (head.method !== "POST") return 405;
  return /^application\/grpc($|[+;])/.test(head.contentType) ? undefined : 415;
}

function unknownMethod(path: string): GrpcProblem {
  const [service = "", method = ""] = path.slice(1).split(/\/(?=[^/]*$)/);
  const message =
    service === SERVICE ? `unknown method ${method} for service ${SERVICE}` : `unknown service ${service}`;
  return new GrpcProblem(GrpcStatus.UNIMPLEMENTED, message);
}
