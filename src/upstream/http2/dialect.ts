import type { IncomingHttpHeaders, IncomingHttpStatusHeader } from "node:http2";
import type { Socket } from "node:net";
import type { UpstreamAddress } from "../config/address.ts";
import type { UpstreamRequest } from "../exchange/exchange.ts";

/** How DNS messages travel in requests and responses of HTTP/2. */
export interface Http2Dialect {
  /** The `proto` label of metrics: `https`, `grpc`. */
  readonly protocol: string;
  dial(remote: UpstreamAddress, sourceAddress: string | undefined): Socket;
  headers(request: UpstreamRequest): Readonly<Record<string, string>>;
  /** Whether the id of the query goes with it and comes back. */
  readonly keepsId: boolean;
  /** In octets of its own, as the connection sends them later; `undefined` where the headers say it all. */
  body(request: UpstreamRequest): Buffer | undefined;
  reader(request: UpstreamRequest): ResponseReader;
  /** The whole message for a reason why there is no answer. */
  describe(reason: string): string;
  /** The reason when there is no answer in time. */
  readonly late: string;
}

/** Reads one response. */
export interface ResponseReader {
  /** Octets that a body may have. */
  readonly longest: number;
  /** Why what begins so is no answer. */
  head(headers: IncomingHttpHeaders & IncomingHttpStatusHeader): string | undefined;
  tail(trailers: IncomingHttpHeaders): void;
  /** The DNS message in a whole body, or why there is none; `undefined` when only the end of the stream tells. */
  message(body: Uint8Array): Uint8Array | string | undefined;
}
