/** DNS over gRPC: the unary method `Query` of `coredns.dns.DnsService` (src/plugins/grpc/README.md). */
import type { IncomingHttpHeaders, IncomingHttpStatusHeader } from "node:http2";
import type { Socket } from "node:net";
import { Flag, Rcode } from "../../dns/numbers.ts";
import { copyOctets, writeU16 } from "../../dns/octets.ts";
import {
  GrpcProblem,
  GrpcStatus,
  MAX_PACKET,
  PREFIX_OCTETS,
  readPacket,
  statusName,
  writePacketHead,
} from "../../lib/net/grpc-message.ts";
import { GrpcResponse } from "../../lib/net/grpc-response.ts";
import type { UpstreamAddress } from "../config/address.ts";
import type { TlsClient } from "../encrypted/tls-client.ts";
import type { UpstreamRequest } from "../exchange/exchange.ts";
import type { Http2Dialect, ResponseReader } from "./dialect.ts";
import { dialHttp2 } from "./http2-connection.ts";

const METHOD = "/coredns.dns.DnsService/Query";

export class GrpcDialect implements Http2Dialect {
  readonly protocol = "grpc";
  readonly keepsId = true;
  readonly late = "context deadline exceeded";
  readonly #client: TlsClient | undefined;
  readonly #headers: Readonly<Record<string, string>>;

  /**
   * @param client agrees on `h2` by ALPN; `undefined` for gRPC in the clear
   * @param authority the host of requests
   */
  constructor(client: TlsClient | undefined, authority: string) {
    this.#client = client;
    this.#headers = {
      ":method": "POST",
      ":scheme": client === undefined ? "http" : "https",
      ":authority": authority,
      ":path": METHOD,
      "content-type": "application/grpc",
      te: "trailers",
    };
  }

  dial(remote: UpstreamAddress, sourceAddress: string | undefined): Socket {
    return dialHttp2(this.#client, remote, sourceAddress);
  }

  headers(request: UpstreamRequest): Readonly<Record<string, string>> {
    return { ...this.#headers, "grpc-timeout": `${Math.max(Math.ceil(request.readTimeout), 1)}m` };
  }

  body({ bytes, length }: UpstreamRequest): Buffer {
    return Buffer.concat([writePacketHead(length), bytes.subarray(0, length)]);
  }

  reader(request: UpstreamRequest): ResponseReader {
    return new CallReader(request);
  }

  /** In the words of gRPC for Go. */
  describe(reason: string): string {
    return reason.startsWith("rpc error:")
      ? reason
      : rpcError(reason === this.late ? GrpcStatus.DEADLINE_EXCEEDED : GrpcStatus.UNAVAILABLE, reason);
  }
}

function rpcError(status: number, reason: string): string {
  return `rpc error: code = ${statusName(status)} desc = ${reason}`;
}

class CallReader implements ResponseReader {
  readonly longest = MAX_PACKET + PREFIX_OCTETS;
  readonly #request: UpstreamRequest;
  readonly #response = new GrpcResponse();

  constructor(request: UpstreamRequest) {
    this.#request = request;
  }

  head(headers: IncomingHttpHeaders & IncomingHttpStatusHeader): string | undefined {
    const problem = this.#response.head(headers);
    return problem === undefined ? undefined : rpcError(problem.status, problem.message);
  }

  tail(trailers: IncomingHttpHeaders): void {
    this.#response.tail(trailers);
  }

  message(body: Uint8Array): Uint8Array | string | undefined {
    // Without a status the stream was cut off: the way it ended says by which side.
    const { status, reason } = this.#response;
    if (status === undefined) return undefined;
    if (status === GrpcStatus.NOT_FOUND) return nameError(this.#request);
    if (status !== GrpcStatus.OK) return rpcError(status, reason);
    const message = readPacket(body);
    return message instanceof GrpcProblem ? rpcError(message.status, message.message) : message;
  }
}

/** The meaning of the status NotFound: NXDOMAIN without further records. */
function nameError({ bytes, questionEnd }: UpstreamRequest): Uint8Array {
  const reply = copyOctets(bytes, 0, questionEnd);
  writeU16(reply, 2, Flag.QR | Rcode.NXDOMAIN | (((bytes[2] as number) & 0x79) << 8));
  writeU16(reply, 6, 0);
  writeU16(reply, 8, 0);
  writeU16(reply, 10, 0);
  return reply;
}
