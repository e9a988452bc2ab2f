/** Client for a back end's HTTP API: JSON, limited in size and time, with retries. */
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
} from "../../lib/net/http-client.ts";
import { BackOff } from "../../lib/time/back-off.ts";
import type { Clock } from "../../lib/time/clock.ts";
import { ZoneSourceError } from "../backed/zone-source.ts";
import { within } from "./deadline.ts";

export interface JsonClientOptions extends ConnectOptions {
  readonly clock: Clock;
  readonly random: { fraction(): number };
  /** Attempts for one answer. Default 4. */
  readonly attempts?: number;
}

export interface JsonRequest {
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds until the answer begins. Default 30 s. */
  readonly timeout?: number;
  readonly signal?: AbortSignal | undefined;
}

export interface JsonAnswer {
  readonly body: unknown;
  /** In lower case. */
  header(name: string): string | undefined;
}

/** The server answered with an error. */
export class HttpStatusError extends ZoneSourceError {
  override readonly name: string = "HttpStatusError";
  readonly status: number;

  constructor(url: URL, status: number, reason: string, retryAfter: number) {
    super(`GET ${withoutQuery(url)}: ${status}${reason === "" ? "" : `: ${reason}`}`, {
      retryAfter,
      isTransient: status === 429 || status === 408 || status >= 500,
    });
    this.status = status;
  }
}

const DEFAULT_TIMEOUT = 30_000;
/** Milliseconds for the body of an answer. */
const BODY_TIME = 10_000;
const FIRST_WAIT = 500;
const LONGEST_WAIT = 8_000;
const DEFAULT_ATTEMPTS = 4;
const MAX_BODY_OCTETS = 64 * 1024 * 1024;

export class JsonClient {
  readonly #options: JsonClientOptions;
  #dispatcher: Promise<Dispatcher> | undefined;

  constructor(options: JsonClientOptions) {
    this.#options = options;
  }

  /** @throws ZoneSourceError, HttpStatusError */
  get(url: URL, request: JsonRequest = {}): Promise<JsonAnswer> {
    const { clock } = this.#options;
    const milliseconds = (request.timeout ?? DEFAULT_TIMEOUT) + BODY_TIME;
    return within(
      { clock, milliseconds, what: `GET ${withoutQuery(url)}`, signal: request.signal },
      (signal) => this.#getPatiently(url, { ...request, signal }),
    );
  }

  async #getPatiently(url: URL, request: JsonRequest): Promise<JsonAnswer> {
    const { attempts = DEFAULT_ATTEMPTS, random } = this.#options;
    const backOff = new BackOff({ first: FIRST_WAIT, longest: LONGEST_WAIT, random });
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#getOnce(url, request);
      } catch (error) {
        const wait = backOff.next();
        if (!(error instanceof ZoneSourceError) || !error.isTransient || attempt >= attempts) throw error;
        // A longer wait is left to the caller.
        if (error.retryAfter > LONGEST_WAIT || request.signal?.aborted === true) throw error;
        await this.#wait(Math.max(wait, error.retryAfter), request.signal);
      }
    }
  }

  async close(): Promise<void> {
    await (await this.#dispatcher)?.destroy();
  }

  async #getOnce(url: URL, { headers, timeout = DEFAULT_TIMEOUT, signal }: JsonRequest): Promise<JsonAnswer> {
    const { request } = await import("undici");
    const dispatcher = await this.#connect();
    try {
      const response = await request(url, {
        dispatcher,
        headers: { accept: "application/json", ...headers },
        headersTimeout: timeout,
        bodyTimeout: DEFAULT_TIMEOUT,
        ...(signal !== undefined && { signal }),
      });
      const text = await readBody(response.body, url);
      const header = (name: string): string | undefined => {
        const value = response.headers[name];
        return Array.isArray(value) ? value[0] : value;
      };
      if (response.statusCode !== 200)
        throw new HttpStatusError(
          url,
          response.statusCode,
          reasonIn(text),
          retryAfterOf(header("retry-after")),
        );
      return { body: parseJson(text, url), header };
    } catch (error) {
      if (error instanceof ZoneSourceError) throw error;
      throw new ZoneSourceError(`GET ${withoutQuery(url)}: ${reasonOf(error)}`, { isTransient: true });
    }
  }

  #connect(): Promise<Dispatcher> {
    this.#dispatcher ??= openDispatcher(this.#options);
    return this.#dispatcher;
  }

  #wait(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        timer.cancel();
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const timer = this.#options.clock.after(milliseconds, end);
      signal?.addEventListener("abort", end);
    });
  }
}

async function readBody(body: AsyncIterable<Uint8Array>, url: URL): Promise<string> {
  try {
    return await readBoundedBody(body, MAX_BODY_OCTETS);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new ZoneSourceError(`GET ${withoutQuery(url)}: ${error.message}`);
  }
}

function parseJson(text: string, url: URL): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ZoneSourceError(`GET ${withoutQuery(url)}: the answer is not JSON`);
  }
}

/** The server's error message: `{"error": {"message": …}}` of the clouds, else text. */
function reasonIn(text: string): string {
  let reason = text;
  try {
    const { error } = record(JSON.parse(text));
    const { code, status, message } = record(error);
    const kind = typeof status === "string" ? status : typeof code === "string" ? code : "";
    reason = typeof error === "string" ? error : [kind, string(message)].filter(Boolean).join(": ");
  } catch {
    // Not JSON.
  }
  return oneLine(reason);
}

function withoutQuery(url: URL): string {
  return `${url.origin === "null" ? "" : url.origin}${url.pathname}`;
}
