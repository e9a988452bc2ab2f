/** What the clients of HTTP APIs have in common: the way out, through a proxy where one is named, and bounds for what comes back. */
import type { Dispatcher } from "undici";

/** PEM. */
export interface TlsOptions {
  readonly ca?: string | readonly string[] | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly servername?: string | undefined;
  readonly rejectUnauthorized?: boolean | undefined;
}

export interface ConnectOptions {
  /** Where `HTTPS_PROXY` and its like stand. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly tls?: TlsOptions | undefined;
  /** A Unix socket that all requests go to. */
  readonly socketPath?: string | undefined;
}

const CONNECT_TIMEOUT = 10_000;
const MAX_REASON_LENGTH = 300;

/** The connections of one client. They are closed with `destroy()`. */
export async function openDispatcher({ tls, socketPath, environment }: ConnectOptions): Promise<Dispatcher> {
  const { Agent, EnvHttpProxyAgent } = await import("undici");
  const { ca, ...others } = tls ?? {};
  const secured = { ...others, ...(ca !== undefined && { ca: typeof ca === "string" ? ca : [...ca] }) };
  const connect = { timeout: CONNECT_TIMEOUT, ...secured, ...(socketPath !== undefined && { socketPath }) };
  return socketPath === undefined
    ? new EnvHttpProxyAgent({ connect, requestTls: secured, ...proxiesOf(environment) })
    : new Agent({ connect });
}

function proxiesOf(environment: ConnectOptions["environment"]) {
  const value = (name: string): string => environment[name] || environment[name.toLowerCase()] || "";
  return { httpProxy: value("HTTP_PROXY"), httpsProxy: value("HTTPS_PROXY"), noProxy: value("NO_PROXY") };
}

/** @throws RangeError where there is more than `maxOctets` */
export async function readBoundedBody(body: AsyncIterable<Uint8Array>, maxOctets: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let octets = 0;
  for await (const chunk of body) {
    octets += chunk.length;
    if (octets > maxOctets) throw new RangeError(`more than ${maxOctets} octets`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Milliseconds. A date (RFC 9110 section 10.2.3) is skipped. */
export function retryAfterOf(value: string | undefined): number {
  return value !== undefined && /^\d{1,6}$/.test(value) ? Number(value) * 1_000 : 0;
}

/** One line, not too long. Node has an error without message for a host with several addresses, none of which can be reached. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  return oneLine(error.message === "" ? error.name : error.message);
}

/** What a stranger wrote, fit for a log line. */
export function oneLine(text: string): string {
  return text
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
