import { type ClientHttp2Stream, constants } from "node:http2";
import { GatheredOctets } from "../../lib/collections/gathered-octets.ts";
import type { UpstreamRequest } from "../exchange/exchange.ts";
import type { MultiplexedQueryOwner } from "../exchange/multiplexed-exchange.ts";
import type { ResponseReader } from "./dialect.ts";
import type { Http2Connection } from "./http2-connection.ts";

/** One query on its own stream. Gathers the body of the response, and reports the outcome once. */
export class Http2Query {
  readonly request: UpstreamRequest;
  readonly connection: Http2Connection<Http2Query>;
  /** The connection's `heard` when the query was sent. */
  readonly heardBefore: number;
  readonly #reader: ResponseReader;
  readonly #owner: MultiplexedQueryOwner;
  #stream: ClientHttp2Stream | undefined;
  #body = new GatheredOctets();
  #isOver = false;

  constructor(
    request: UpstreamRequest,
    connection: Http2Connection<Http2Query>,
    reader: ResponseReader,
    owner: MultiplexedQueryOwner,
  ) {
    this.request = request;
    this.#reader = reader;
    this.connection = connection;
    this.heardBefore = connection.heard;
    this.#owner = owner;
  }

  begin(stream: ClientHttp2Stream, body: Uint8Array | undefined): void {
    this.#stream = stream;
    stream.on("response", (headers) => {
      this.connection.heard++;
      const problem = this.#reader.head(headers);
      if (problem !== undefined) this.#end(() => this.#owner.failed(problem));
    });
    stream.on("trailers", (trailers) => this.#reader.tail(trailers));
    stream.on("data", (chunk: Buffer) => {
      this.connection.heard++;
      if (this.#isOver) return;
      if (this.#body.length + chunk.length > this.#reader.longest)
        this.#end(() => this.#owner.failed("response longer than a DNS message"));
      else this.#body.add(chunk);
    });
    stream.on("end", () => {
      if (this.#isOver) return;
      const message = this.#reader.message(this.#body.octets);
      if (typeof message === "string") this.#end(() => this.#owner.failed(message));
      else if (message !== undefined) this.#end(() => this.#owner.answered(message));
    });
    // The close event has the reason.
    stream.on("error", () => undefined);
    stream.on("close", () => {
      // The end of the connection ends all its queries together.
      if (this.connection.isLost || this.connection.isEnding) return;
      if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) this.#end(() => this.#owner.refused());
      else
        this.#end(() =>
          this.#owner.failed(`stream error: stream ID ${stream.id ?? 0}; code ${stream.rstCode ?? 0}`),
        );
    });
    if (body !== undefined) stream.end(body);
  }

  /** Abandons the query without a callback. */
  cancel(): void {
    this.#isOver = true;
    this.#body = new GatheredOctets();
    const stream = this.#stream;
    if (stream !== undefined && !stream.destroyed) stream.close(constants.NGHTTP2_CANCEL);
  }

  #end(tell: () => void): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const stream = this.#stream;
    if (stream !== undefined && !stream.closed) stream.close(constants.NGHTTP2_CANCEL);
    tell();
    this.#body = new GatheredOctets();
  }
}
