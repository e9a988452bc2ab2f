/** DNS messages in HTTP requests, and the replies to them (RFC 8484; docs/spec/coredns-behaviour.md#transports). */
import type { Endpoint } from "../plugin/message/endpoint.ts";
import type { Reply } from "../plugin/query/reply.ts";
import { minimalTtl, responseType } from "../plugin/query/response-type.ts";
import type { MessageReceiver, ReplyPort } from "./transport.ts";

/** Maximum length of a body. */
export const MAX_BODY = 65_536;
const PATH = "/dns-query";

/** Receives a response. */
export interface HttpResponse {
  readonly isOpen: boolean;
  write(status: number, headers: Readonly<Record<string, string | number>>, body: Uint8Array): void;
}

export interface HttpQueriesOptions {
  readonly receiver: MessageReceiver;
  /** Milliseconds since 1970. */
  readonly wallTime: () => number;
  /** Called for each response. */
  readonly onResponse?: ((status: number) => void) | undefined;
}

/** The target of a request line. */
export type RequestTarget =
  | { readonly kind: "message"; readonly message: Uint8Array }
  /** The message is the body. */
  | { readonly kind: "body" }
  | { readonly kind: "refused"; readonly status: number };

/** @param target path and query as in the request */
export function readTarget(method: string | undefined, target: string | undefined): RequestTarget {
  const [path, query = ""] = splitOnce(target ?? "", "?");
  if (path !== PATH) return { kind: "refused", status: 404 };
  if (method === "POST") return { kind: "body" };
  if (method !== "GET") return { kind: "refused", status: 400 };
  const values = new URLSearchParams(query).getAll("dns");
  const [text] = values;
  // Unpadded (RFC 8484 section 4.1); a single last digit is invalid in base64url.
  if (values.length !== 1 || text === undefined || !/^[\w-]+$/.test(text) || text.length % 4 === 1)
    return { kind: "refused", status: 400 };
  return { kind: "message", message: Buffer.from(text, "base64url") };
}

export class HttpQueries {
  readonly options: HttpQueriesOptions;

  constructor(options: HttpQueriesOptions) {
    this.options = options;
  }

  ask(message: Uint8Array, client: Endpoint, local: Endpoint, response: HttpResponse): void {
    if (!isMessage(message, message.length)) this.refuse(400, response);
    else
      this.options.receiver.receive(
        message,
        message.length,
        new HttpReplyPort(this, client, local, response),
      );
  }

  refuse(status: number, response: HttpResponse): void {
    const { headers, body } = refusal(status);
    this.respond(status, headers, body, response);
  }

  respond(
    status: number,
    headers: Readonly<Record<string, string | number>>,
    body: Uint8Array,
    response: HttpResponse,
  ): void {
    if (!response.isOpen) return;
    this.options.onResponse?.(status);
    response.write(status, { ...headers, "content-length": body.length }, body);
  }
}

/** Whether a message has a header and is not a reply. Other transports ignore other messages silently. */
export function isMessage(message: Uint8Array, length: number): boolean {
  return length >= 12 && ((message[2] as number) & 0x80) === 0;
}

/** Freshness lifetime of a response in seconds (RFC 8484 section 5.1). @param wallTime milliseconds since 1970 */
export function maxAge(reply: Reply, wallTime: number): number {
  return minimalTtl(reply, responseType(reply, wallTime));
}

/** The body of an unsuccessful status. */
export function refusal(status: number): {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
} {
  return { headers: REFUSAL_HEADERS, body: REFUSALS[status] ?? INVALID };
}

const REFUSAL_HEADERS = { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" };
const INVALID = Buffer.from("invalid request\n");
const REFUSALS: Readonly<Record<number, Uint8Array>> = {
  404: Buffer.from("\n"),
  500: Buffer.from("No response\n"),
};

class HttpReplyPort implements ReplyPort {
  readonly client: Endpoint;
  readonly local: Endpoint;
  readonly #queries: HttpQueries;
  readonly #response: HttpResponse;
  #octets: Uint8Array = NO_OCTETS;
  #maxAge = 0;

  constructor(queries: HttpQueries, client: Endpoint, local: Endpoint, response: HttpResponse) {
    this.#queries = queries;
    this.client = client;
    this.local = local;
    this.#response = response;
  }

  keep(): ReplyPort {
    return this;
  }

  buffer(size: number): Uint8Array {
    this.#octets = Buffer.allocUnsafe(size);
    return this.#octets;
  }

  describe(reply: Reply): void {
    this.#maxAge = maxAge(reply, this.#queries.options.wallTime());
  }

  send(length: number): void {
    const headers = {
      "content-type": "application/dns-message",
      "cache-control": `max-age=${this.#maxAge}`,
    };
    this.#queries.respond(200, headers, this.#octets.subarray(0, length), this.#response);
  }

  drop(): void {
    this.#queries.refuse(500, this.#response);
  }

  reject(): void {
    this.#queries.refuse(400, this.#response);
  }
}

const NO_OCTETS = new Uint8Array(0);

function splitOnce(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}
