/**
 * DNS over gRPC: the unary method `Query` of `coredns.dns.DnsService` (CoreDNS facts 1.16), over TLS or with prior knowledge of HTTP/2 in
 * the clear.
 */
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import {
  GrpcProblem,
  GrpcStatus,
  lengthOf,
  MAX_PACKET,
  PREFIX_OCTETS,
  readPacket,
  statusText,
  writePacketHead,
} from "../lib/grpc-message.ts";
import type { Endpoint } from "../plugin/endpoint.ts";
import { type ByteStream, type ByteStreamServerOptions, listenForStreams } from "./byte-stream-server.ts";
import { Http2Connection, type HttpObserver, type HttpTimeouts } from "./http2-connection.ts";
import type { ListenTarget, MessageReceiver, Rejection, ReplyPort, Transport } from "./transport.ts";

export interface GrpcOptions
  extends Omit<ByteStreamServerOptions, "name" | "serve" | "handshakeTimeout">,
    HttpObserver {
  /** Streams of a connection at one time, 0 for as many as HTTP/2 allows. */
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
  const { clock, timeouts, onFault, onTimeout } = options;
  return listenForStreams(target, {
    ...options,
    name: "grpc",
    handshakeTimeout: () => timeouts().read,
    serve: (stream, heardFrom) =>
      new Http2Connection(
        stream,
        {
          clock,
          onFault,
          onTimeout,
          maxStreams: () => options.maxStreams() || UNBOUNDED_STREAMS,
          // Clients keep their connections: they go when others need room.
          timeouts: () => ({ ...timeouts(), idle: Number.POSITIVE_INFINITY }),
          onStream: (opened, headers, connection) => {
            new Call(opened, stream, connection).begin(headers, receiver);
          },
        },
        heardFrom,
      ),
  });
}

/** One call, and the way back to who made it. */
class Call implements ReplyPort {
  readonly client: Endpoint;
  readonly local: Endpoint;
  readonly #stream: ServerHttp2Stream;
  readonly #connection: Http2Connection;
  #query: Uint8Array = NO_OCTETS;
  #octets: Uint8Array = NO_OCTETS;

  constructor(stream: ServerHttp2Stream, { client, local }: ByteStream, connection: Http2Connection) {
    this.client = client;
    this.local = local;
    this.#stream = stream;
    this.#connection = connection;
  }

  begin(headers: IncomingHttpHeaders, receiver: MessageReceiver): void {
    const refusal = httpRefusal(headers);
    if (refusal !== undefined) {
      this.#stream.respond({ ":status": refusal }, { endStream: true });
      this.#stream.resume();
      return;
    }
    const path = String(headers[":path"]);
    if (path !== METHOD) {
      this.#fail(unknownMethod(path));
      this.#stream.resume();
      return;
    }
    this.#read((octets) => {
      this.#connection.requestIsWhole(this.#stream);
      const message = octets instanceof GrpcProblem ? octets : readPacket(octets);
      if (message instanceof GrpcProblem) this.#fail(message);
      else if (message.length < 12)
        this.#fail(new GrpcProblem(GrpcStatus.UNKNOWN, "dns: buffer size too small"));
      else if (((message[2] as number) & 0x80) !== 0) this.reject("malformed");
      else {
        this.#query = message;
        receiver.receive(message, message.length, this);
      }
    });
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

  /** A query that is dropped comes back as it was. */
  drop(): void {
    this.#respond(this.#query);
  }

  reject(_rejection: Rejection): void {
    this.#fail(new GrpcProblem(GrpcStatus.UNKNOWN, "dns request rejected"));
  }

  #respond(message: Uint8Array): void {
    if (!this.#isOpen) return;
    this.#connection.responseIsSent(this.#stream);
    this.#stream.on("wantTrailers", () =>
      this.#stream.sendTrailers({ "grpc-status": "0", "grpc-message": "" }),
    );
    this.#stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    this.#stream.end(Buffer.concat([writePacketHead(message.length), message]));
  }

  #fail({ status, message }: GrpcProblem): void {
    if (!this.#isOpen) return;
    this.#connection.responseIsSent(this.#stream);
    const headers = {
      ":status": 200,
      "content-type": "application/grpc",
      "grpc-status": String(status),
      "grpc-message": statusText(message),
    };
    this.#stream.respond(headers, { endStream: true });
  }

  get #isOpen(): boolean {
    return !this.#stream.destroyed && !this.#stream.closed && !this.#stream.headersSent;
  }

  #read(done: (octets: Uint8Array | GrpcProblem) => void): void {
    const chunks: Buffer[] = [];
    let octets = 0;
    let isDone = false;
    this.#stream.on("data", (chunk: Buffer) => {
      octets += chunk.length;
      if (isDone) return;
      chunks.push(chunk);
      if (octets <= MAX_PACKET) return;
      isDone = true;
      const message = Buffer.concat(chunks);
      const length = message.length < PREFIX_OCTETS ? octets : lengthOf(message);
      done(
        new GrpcProblem(
          GrpcStatus.RESOURCE_EXHAUSTED,
          `grpc: received message larger than max (${length} vs. ${MAX_PACKET})`,
        ),
      );
    });
    this.#stream.on("end", () => {
      if (isDone) return;
      isDone = true;
      done(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));
    });
  }
}

const NO_OCTETS = new Uint8Array(0);

/** The status of HTTP for what is no call of gRPC. */
function httpRefusal(headers: IncomingHttpHeaders): number | undefined {
  if (headers[":method"] !== "POST") return 405;
  return /^application\/grpc($|[+;])/.test(headers["content-type"] ?? "") ? undefined : 415;
}

function unknownMethod(path: string): GrpcProblem {
  const [service = "", method = ""] = path.slice(1).split(/\/(?=[^/]*$)/);
  const message =
    service === SERVICE ? `unknown method ${method} for service ${SERVICE}` : `unknown service ${service}`;
  return new GrpcProblem(GrpcStatus.UNIMPLEMENTED, message);
}
