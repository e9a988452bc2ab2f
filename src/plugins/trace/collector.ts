/** One request to a collector over HTTP. */
import type { Agent, ClientRequest } from "node:http";
import type { SecureContext } from "node:tls";
import { nodeHttp, nodeHttps } from "../../lib/files/node-modules.ts";
import type { Clock } from "../../plugin/index.ts";
import { describeTlsError } from "../../upstream/encrypted/tls-words.ts";

export interface CollectorRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

export interface CollectorAnswer {
  readonly status: number;
  /** Milliseconds to wait before the next request, if the collector says so. */
  readonly retryAfter: number | undefined;
  /** The beginning of the body. */
  readonly text: string;
}

/** Milliseconds to wait for the answer. */
const TIMEOUT = 10_000;
const MAX_ANSWER_OCTETS = 64 * 1024;
/** Bound for the wait that a collector may ask for. */
const LONGEST_RETRY_AFTER = 300_000;

export class Collector {
  /** The place in messages, without a password. */
  readonly place: string;
  readonly #url: URL;
  readonly #clock: Clock;
  readonly #trust: () => Promise<SecureContext>;
  #context: SecureContext | undefined;
  #agent: Agent | undefined;
  #underWay: ClientRequest | undefined;

  /** @param trust certificates for an `https:` URL */
  constructor(url: URL, clock: Clock, trust: () => Promise<SecureContext>) {
    this.#url = url;
    this.place = url.origin + url.pathname;
    this.#clock = clock;
    this.#trust = trust;
  }

  /** Must be called before the first request. @throws SetupError */
  async open(): Promise<void> {
    if (this.#url.protocol === "https:") this.#context = await this.#trust();
  }

  /** Rejects without an answer. */
  send({ method, headers, body }: CollectorRequest): Promise<CollectorAnswer> {
    const module = this.#url.protocol === "https:" ? nodeHttps() : nodeHttp();
    const secureContext = this.#context;
    this.#agent ??= new module.Agent({
      keepAlive: true,
      maxSockets: 1,
      ...(secureContext !== undefined && { secureContext }),
    });
    const { promise, resolve, reject } = Promise.withResolvers<CollectorAnswer>();
    const request = module.request(this.#url, {
      method,
      agent: this.#agent,
      headers: { ...headers, "content-length": body.length },
    });
    this.#underWay = request;
    const timer = this.#clock.after(TIMEOUT, () => request.destroy(new Error("no answer within 10 s")));
    // A server that stops must not wait for a collector.
    request.on("socket", (socket) => socket.unref());
    request.on("error", (error) => reject(new Error(describeTlsError(error) ?? error.message)));
    request.on("close", () => {
      timer.cancel();
      reject(new Error("the connection was closed"));
    });
    request.on("response", (response) => {
      const parts: Buffer[] = [];
      let size = 0;
      response.on("data", (part: Buffer) => {
        size += part.length;
        if (size <= MAX_ANSWER_OCTETS) parts.push(part);
        else request.destroy(new Error(`an answer of more than ${MAX_ANSWER_OCTETS} octets`));
      });
      response.on("error", reject);
      response.on("end", () => {
        resolve({
          status: response.statusCode ?? 0,
          retryAfter: this.#retryAfter(response.headers["retry-after"]),
          text: Buffer.concat(parts).toString(),
        });
      });
    });
    request.end(body);
    return promise;
  }

  close(): void {
    this.#underWay?.destroy();
    this.#agent?.destroy();
  }

  /** Seconds, or a date (RFC 9110 section 10.2.3). */
  #retryAfter(header: string | undefined): number | undefined {
    if (header === undefined) return undefined;
    const wait = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - this.#clock.wallTime();
    return wait > 0 ? Math.min(wait, LONGEST_RETRY_AFTER) : undefined;
  }
}
