import type { IncomingHttpHeaders, IncomingHttpStatusHeader } from "node:http2";
import type { Socket } from "node:net";
import type { UpstreamAddress } from "../config/address.ts";
import type { UpstreamRequest } from "../exchange/exchange.ts";

/** Encoding of DNS messages in HTTP/2 requests and responses. */
export interface Http2Dialect {
  /** The `proto` label of metrics: `https`, `grpc`. */
  readonly protocol: string;
  dial(remote: UpstreamAddress, sourceAddress: string | undefined): Socket;
  headers(request: UpstreamRequest): Readonly<Record<string, string>>;
  /** Whether the id of the query is sent and comes back. */
  readonly keepsId: boolean;
  /** In its own octets, as the connection sends them later; `undefined` if the headers say it all. */
  body(request: UpstreamRequest): Buffer | undefined;
  reader(request: UpstreamRequest): ResponseReader;
  /** The whole message for the reason of a failure. */
  describe(reason: string): string;
  /** The reason for a timeout. */
  readonly late: string;
}

/** Reads one response. */
export interface ResponseReader {
  /** Maximum octets of a body. */
  readonly longest: number;
  /** The reason to refuse a response with this header; `undefined` if it may be an answer. */
  head(headers: IncomingHttpHeaders & IncomingHttpStatusHeader): string | undefined;
  tail(trailers: IncomingHttpHeaders): void;
  /** The DNS message in a whole body, or the reason for its absence; `undefined` if only the end of the stream decides. */
  message(body: Uint8Array): Uint8Array | string | undefined;
}
