/** Asking the HTTP API of a back end: JSON, bounded in size and time, asked again where that may help. */
import type { Dispatcher } from "undici";
import { BackOff } from "../../lib/back-off.ts";
import type { Clock } from "../../lib/clock.ts";
import { ZoneSourceError } from "../zone-source.ts";

export interface JsonClientOptions {
  readonly clock: Clock;
  readonly random: { fraction(): number };
  /** Where `HTTPS_PROXY` and its like stand. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly tls?: TlsOptions | undefined;
  /** A Unix socket that all requests go to. */
  readonly socketPath?: string | undefined;
  /** Requests that may be made for one answer. Default 4. */
  readonly attempts?: number;
}

/** PEM. */
export interface TlsOptions {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly servername?: string | undefined;
  readonly rejectUnauthorized?: boolean | undefined;
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

/** The server answered, and not with what was asked for. */
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

const CONNECT_TIMEOUT = 10_000;
const DEFAULT_TIMEOUT = 30_000;
const FIRST_WAIT = 500;
const LONGEST_WAIT = 8_000;
const DEFAULT_ATTEMPTS = 4;
const MAX_BODY_OCTETS = 64 * 1024 * 1024;
const MAX_REASON_LENGTH = 300;

export class JsonClient {
  readonly #options: JsonClientOptions;
  #dispatcher: Dispatcher | undefined;

  constructor(options: JsonClientOptions) {
    this.#options = options;
  }

  /** @throws ZoneSourceError, HttpStatusError */
  async get(url: URL, request: JsonRequest = {}): Promise<JsonAnswer> {
    const { attempts = DEFAULT_ATTEMPTS, random } = this.#options;
    const backOff = new BackOff({ first: FIRST_WAIT, longest: LONGEST_WAIT, random });
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#getOnce(url, request);
      } catch (error) {
        const wait = backOff.next();
        if (!(error instanceof ZoneSourceError) || !error.isTransient || attempt >= attempts) throw error;
        // A server that wants to be left alone for longer is left alone by whoever asked.
        if (error.retryAfter > LONGEST_WAIT || request.signal?.aborted === true) throw error;
        await this.#wait(Math.max(wait, error.retryAfter), request.signal);
      }
    }
  }

  async close(): Promise<void> {
    await this.#dispatcher?.destroy();
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

  async #connect(): Promise<Dispatcher> {
    const { Agent, EnvHttpProxyAgent } = await import("undici");
    if (this.#dispatcher !== undefined) return this.#dispatcher;
    const { tls, socketPath, environment } = this.#options;
    const connect = { timeout: CONNECT_TIMEOUT, ...tls, ...(socketPath !== undefined && { socketPath }) };
    this.#dispatcher =
      socketPath === undefined
        ? new EnvHttpProxyAgent({ connect, requestTls: { ...tls }, ...proxiesOf(environment) })
        : new Agent({ connect });
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

function proxiesOf(environment: JsonClientOptions["environment"]) {
  const value = (name: string): string => environment[name] || environment[name.toLowerCase()] || "";
  return { httpProxy: value("HTTP_PROXY"), httpsProxy: value("HTTPS_PROXY"), noProxy: value("NO_PROXY") };
}

async function readBody(body: AsyncIterable<Uint8Array>, url: URL): Promise<string> {
  const chunks: Uint8Array[] = [];
  let octets = 0;
  for await (const chunk of body) {
    octets += chunk.length;
    if (octets > MAX_BODY_OCTETS)
      throw new ZoneSourceError(`GET ${withoutQuery(url)}: more than ${MAX_BODY_OCTETS} octets`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function parseJson(text: string, url: URL): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new ZoneSourceError(`GET ${withoutQuery(url)}: the answer is no JSON`);
  }
}

/** What a server says is wrong: `{"error": {"message": …}}` of the clouds, else text. */
function reasonIn(text: string): string {
  let reason = text;
  try {
    const { error } = record(JSON.parse(text));
    const { code, status, message } = record(error);
    const kind = typeof status === "string" ? status : typeof code === "string" ? code : "";
    reason = typeof error === "string" ? error : [kind, string(message)].filter(Boolean).join(": ");
  } catch {
    // Text, then.
  }
  return reason
    .trim()
    .replace(/\s+/g, " ")
    .replace(/\p{Cc}/gu, "?")
    .slice(0, MAX_REASON_LENGTH);
}

/** A value of JSON as an object; what is none has no members. */
export function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

/** A value of JSON as a list; what is none has no entries. */
export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function string(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Node has an error without message for a host with several addresses, none of which can be reached. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  return (error.message === "" ? error.name : error.message).replace(/\s+/g, " ").slice(0, MAX_REASON_LENGTH);
}

/** Seconds, or a date (RFC 9110 section 10.2.3), which is passed over. */
function retryAfterOf(value: string | undefined): number {
  return value !== undefined && /^\d{1,6}$/.test(value) ? Number(value) * 1_000 : 0;
}

function withoutQuery(url: URL): string {
  return `${url.origin === "null" ? "" : url.origin}${url.pathname}`;
}
