/** DNS over gRPC: the unary method `Query` of `coredns.dns.DnsService` (src/plugins/grpc/README.md). */
import type { IncomingHttpHeaders, IncomingHttpStatusHeader } from "node:http2";
import { connect, type Socket } from "node:net";
import { Flag, Rcode } from "../../dns/numbers.ts";
import { copyOctets, writeU16 } from "../../dns/octets.ts";
import {
  GrpcProblem,
  GrpcStatus,
  MAX_PACKET,
  PREFIX_OCTETS,
  readPacket,
  statusName,
  textOfStatus,
  writePacketHead,
} from "../../lib/net/grpc-message.ts";
import type { UpstreamAddress } from "../config/address.ts";
import type { TlsClient } from "../encrypted/tls-client.ts";
import type { UpstreamRequest } from "../exchange/exchange.ts";
import type { Http2Dialect, ResponseReader } from "./dialect.ts";

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
    if (this.#client !== undefined) return this.#client.connect(remote, sourceAddress);
    if (remote.path !== undefined) return connect(remote.path);
    return connect({
      host: remote.host,
      port: remote.port,
      noDelay: true,
      ...(sourceAddress !== undefined && { localAddress: sourceAddress }),
    });
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

/** A message and then a status; a status alone, in the headers, if there is no message. */
class CallReader implements ResponseReader {
  readonly longest = MAX_PACKET + PREFIX_OCTETS;
  readonly #request: UpstreamRequest;
  #status: number | undefined;
  #reason = "";

  constructor(request: UpstreamRequest) {
    this.#request = request;
  }

  head(headers: IncomingHttpHeaders & IncomingHttpStatusHeader): string | undefined {
    const status = headers[":status"];
    const type = headers["content-type"];
    if (headers["grpc-status"] !== undefined) {
      this.tail(headers);
      return undefined;
    }
    if (status !== 200)
      return rpcError(
        Number(status) === 401 ? GrpcStatus.UNAUTHENTICATED : GrpcStatus.UNAVAILABLE,
        `unexpected HTTP status code received from server: ${status}`,
      );
    return type === undefined || !/^application\/grpc($|[+;])/.test(type)
      ? rpcError(
          GrpcStatus.UNKNOWN,
          `unexpected content-type ${JSON.stringify(type ?? "")}: no gRPC server is there`,
        )
      : undefined;
  }

  tail(trailers: IncomingHttpHeaders): void {
    const status = trailers["grpc-status"];
    if (status === undefined) return;
    this.#status = /^\d{1,3}$/.test(String(status)) ? Number(status) : GrpcStatus.UNKNOWN;
    this.#reason = textOfStatus(trailers["grpc-message"]);
  }

  message(body: Uint8Array): Uint8Array | string | undefined {
    // Without a status the stream was cut off: the way it ended says by which side.
    if (this.#status === undefined) return undefined;
    if (this.#status === GrpcStatus.NOT_FOUND) return nameError(this.#request);
    if (this.#status !== GrpcStatus.OK) return rpcError(this.#status, this.#reason);
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
