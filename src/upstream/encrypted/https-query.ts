import { type ClientHttp2Stream, constants } from "node:http2";
import type { UpstreamRequest } from "../exchange.ts";
import type { ConnectionQuery, HttpsConnection } from "./https-connection.ts";

export interface HttpsQueryOwner {
  answered(body: Uint8Array): void;
  failed(reason: string): void;
  /** The server has not looked at the query: it may be sent again. */
  refused(): void;
}

/** What a DNS message can have. */
const LONGEST_BODY = 0xffff;

/** One query on a stream of its own: gathers the body of the response. Its owner hears of the end once. */
export class HttpsQuery implements ConnectionQuery {
  readonly request: UpstreamRequest;
  readonly connection: HttpsConnection<HttpsQuery>;
  /** What the connection had heard when the query went. */
  readonly heardBefore: number;
  readonly #owner: HttpsQueryOwner;
  #stream: ClientHttp2Stream | undefined;
  #body: Buffer[] = [];
  #length = 0;
  #problem: string | undefined;
  #isOver = false;

  constructor(request: UpstreamRequest, connection: HttpsConnection<HttpsQuery>, owner: HttpsQueryOwner) {
    this.request = request;
    this.connection = connection;
    this.heardBefore = connection.heard;
    this.#owner = owner;
  }

  begin(stream: ClientHttp2Stream, body: Uint8Array | undefined): void {
    this.#stream = stream;
    stream.on("response", (headers) => {
      this.connection.heard++;
      const status = headers[":status"];
      const type = headers["content-type"];
      if (status !== 200) this.#problem = `HTTP status ${status}`;
      else if (type === undefined || !/^application\/dns-message\s*(;|$)/i.test(type))
        this.#problem = `content type ${type ?? "missing"}, not application/dns-message`;
      if (this.#problem !== undefined) this.#end(() => this.#owner.failed(this.#problem ?? ""));
    });
    stream.on("data", (chunk: Buffer) => {
      this.connection.heard++;
      this.#length += chunk.length;
      if (this.#length > LONGEST_BODY)
        this.#end(() => this.#owner.failed("response longer than a DNS message"));
      else if (!this.#isOver) this.#body.push(chunk);
    });
    stream.on("end", () => {
      if (this.#length > 0)
        this.#end(() =>
          this.#owner.answered(
            this.#body.length === 1 ? (this.#body[0] as Buffer) : Buffer.concat(this.#body),
          ),
        );
    });
    // The reason follows with the close of the stream.
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

  /** Nobody waits any more; the owner is not told. */
  cancel(code: number): void {
    this.#isOver = true;
    this.#body = [];
    const stream = this.#stream;
    if (stream !== undefined && !stream.destroyed) stream.close(code);
  }

  #end(tell: () => void): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const stream = this.#stream;
    if (stream !== undefined && !stream.closed) stream.close(constants.NGHTTP2_CANCEL);
    tell();
    this.#body = [];
  }
}
