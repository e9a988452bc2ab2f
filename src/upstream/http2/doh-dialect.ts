/** DNS over HTTPS (RFC 8484). */
import type { IncomingHttpHeaders, IncomingHttpStatusHeader } from "node:http2";
import type { Socket } from "node:net";
import { writeU16 } from "../../dns/octets.ts";
import type { UpstreamAddress } from "../config/address.ts";
import { QueryPadder } from "../encrypted/query-padding.ts";
import type { TlsClient } from "../encrypted/tls-client.ts";
import type { UpstreamRequest } from "../exchange/exchange.ts";
import type { Http2Dialect, ResponseReader } from "./dialect.ts";

export type DohMethod = "GET" | "POST";

export interface DohOptions {
  /** Agrees on `h2` by ALPN. */
  readonly client: TlsClient;
  /** Host, and port if it is not 443. */
  readonly authority: string;
  readonly path: string;
  readonly method: DohMethod;
}

/** Maximum length of a DNS message. */
const LONGEST_MESSAGE = 0xffff;

export class DohDialect implements Http2Dialect {
  readonly protocol = "https";
  readonly keepsId = false;
  readonly late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
  readonly #options: DohOptions;
  readonly #padder = new QueryPadder();
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(options: DohOptions) {
    this.#options = options;
    const { authority, path, method } = options;
    this.#url = `https://${authority}${path}`;
    this.#headers = {
      ":method": method,
      ":scheme": "https",
      ":authority": authority,
      ":path": path,
      accept: "application/dns-message",
      ...(method === "POST" && { "content-type": "application/dns-message" }),
    };
  }

  dial(remote: UpstreamAddress, sourceAddress: string | undefined): Socket {
    return this.#options.client.connect(remote, sourceAddress);
  }

  headers(request: UpstreamRequest): Readonly<Record<string, string>> {
    if (this.#options.method === "POST") return this.#headers;
    const question = this.#message(request).toString("base64url");
    return { ...this.#headers, ":path": `${this.#options.path}?dns=${question}` };
  }

  body(request: UpstreamRequest): Buffer | undefined {
    return this.#options.method === "POST" ? this.#message(request) : undefined;
  }

  reader(): ResponseReader {
    return READER;
  }

  /** In the words of Go's HTTP client. */
  describe(reason: string): string {
    return `${this.#options.method === "POST" ? "Post" : "Get"} "${this.#url}": ${reason}`;
  }

  /** The id is 0, so that caches on the way may share answers. */
  #message(request: UpstreamRequest): Buffer {
    const padded = this.#padder.pad(request.bytes, request.length, request.questionEnd);
    const message = Buffer.from(padded);
    writeU16(message, 0, 0);
    return message;
  }
}

/** Stateless, so one object serves all responses. */
const READER: ResponseReader = {
  longest: LONGEST_MESSAGE,
  head(headers: IncomingHttpHeaders & IncomingHttpStatusHeader) {
    const status = headers[":status"];
    const type = headers["content-type"];
    if (status !== 200) return `HTTP status ${status}`;
    return type === undefined || !/^application\/dns-message\s*(;|$)/i.test(type)
      ? `content type ${type ?? "missing"}, not application/dns-message`
      : undefined;
  },
  tail: () => undefined,
  message: (body) => (body.length > 0 ? body : undefined),
};
