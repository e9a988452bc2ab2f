/** Shared by the clients of HTTP APIs: the dispatcher, with a proxy if one is configured, and bounds on responses. */
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
  /** The environment, with `HTTPS_PROXY` and related variables. */
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

/** @throws RangeError above `maxOctets` */
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

/** Milliseconds. A date (RFC 9110 section 10.2.3) is ignored. */
export function retryAfterOf(value: string | undefined): number {
  return value !== undefined && /^\d{1,6}$/.test(value) ? Number(value) * 1_000 : 0;
}

/** One line of limited length. Node's error is empty for a host with several addresses if all are unreachable. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  return oneLine(error.message === "" ? error.name : error.message);
}

/** Text from a remote server, made safe for a log line. */
export function oneLine(text: string): string {
  return text
    .trim()
    .replace(/\s+/g, " ")
    .replace(/\p{Cc}/gu, "?")
    .slice(0, MAX_REASON_LENGTH);
}

/** A JSON value as an object; any other value becomes an empty one. */
export function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

/** A JSON value as a list; any other value becomes an empty one. */
export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function string(value: unknown): string {
  return typeof value === "string" ? value : "";
}
