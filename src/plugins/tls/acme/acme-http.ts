/** Requests to a CA, bounded in time and size. */
import type { Dispatcher } from "undici";
import {
  type ConnectOptions,
  oneLine,
  openDispatcher,
  readBoundedBody,
  reasonOf,
  record,
  retryAfterOf,
  string,
} from "../../../lib/net/http-client.ts";
import { AcmeError } from "./acme-error.ts";

export interface AcmeResponse {
  readonly status: number;
  readonly body: string;
  /** The body as JSON, an empty object if it is not a JSON object. */
  readonly json: Readonly<Record<string, unknown>>;
  /** Milliseconds, 0 without the header. */
  readonly retryAfter: number;
  /** The value of a header; the name is in lower case. */
  header(name: string): string | undefined;
}

export interface AcmeRequest {
  readonly method: "GET" | "HEAD" | "POST";
  readonly body?: string;
  readonly accept?: string;
}

const TIMEOUT = 30_000;
const MAX_BODY_OCTETS = 1024 * 1024;
const PROBLEM_PREFIX = "urn:ietf:params:acme:error:";

export class AcmeHttp {
  readonly #options: ConnectOptions & { readonly userAgent: string };
  #dispatcher: Promise<Dispatcher> | undefined;

  constructor(options: ConnectOptions & { readonly userAgent: string }) {
    this.#options = options;
  }

  /**
   * @param signal aborts the request @throws AcmeError if the server cannot be reached, and for a status of 400 or
   * more
   */
  async request(
    url: string,
    { method, body, accept }: AcmeRequest,
    signal: AbortSignal,
  ): Promise<AcmeResponse> {
    const { request } = await import("undici");
    this.#dispatcher ??= openDispatcher(this.#options);
    const dispatcher = await this.#dispatcher;
    try {
      const response = await request(url, {
        method,
        dispatcher,
        signal,
        headersTimeout: TIMEOUT,
        bodyTimeout: TIMEOUT,
        headers: {
          "user-agent": this.#options.userAgent,
          ...(accept !== undefined && { accept }),
          ...(body !== undefined && { "content-type": "application/jose+json" }),
        },
        ...(body !== undefined && { body }),
      });
      const text = await readBoundedBody(response.body, MAX_BODY_OCTETS);
      const header = (name: string): string | undefined => {
        const value = response.headers[name];
        return Array.isArray(value) ? value[0] : value;
      };
      return {
        status: response.statusCode,
        body: text,
        json: parseJson(text),
        retryAfter: retryAfterOf(header("retry-after")),
        header,
      };
    } catch (error) {
      throw new AcmeError(`${method} ${url}: ${reasonOf(error)}`, { isTransient: true });
    }
  }
}

/** Makes an error of a CA's problem document (RFC 7807). */
export function refusal(what: string, { status, json, retryAfter }: AcmeResponse): AcmeError {
  return problemError(what, json, { status, retryAfter });
}

/** @param problem from a response, or from an authorization that failed */
export function problemError(
  what: string,
  problem: unknown,
  { status = 0, retryAfter = 0 }: { readonly status?: number; readonly retryAfter?: number } = {},
): AcmeError {
  const { type, detail } = record(problem);
  const short = string(type).startsWith(PROBLEM_PREFIX) ? string(type).slice(PROBLEM_PREFIX.length) : "";
  const reason = [short, oneLine(string(detail))].filter((text) => text !== "").join(": ");
  return new AcmeError(`${what}: ${reason === "" ? `status ${status}` : reason}`, {
    type: short,
    retryAfter,
    isTransient: status >= 500 || status === 429,
  });
}

function parseJson(text: string): Readonly<Record<string, unknown>> {
  try {
    return record(JSON.parse(text));
  } catch {
    return {};
  }
}
