/** Requests to the API: connections, TLS, credentials, fail-over. What the answers mean is for others. */
import type { buildConnector, Dispatcher } from "undici";
import { fileFault } from "../../../lib/files/file-fault.ts";
import type { Clock } from "../../../lib/time/clock.ts";
import type { SharedTurns } from "../../../lib/time/turn-share.ts";
import { loadUndiciParts } from "../../../runtime/undici-parts.ts";
import type { ClusterAccess, Material } from "../access/access.ts";
import { ApiConnectionError, CredentialError } from "../access/api-error.ts";
import type { Credential, Credentials } from "../access/credential.ts";
import { CachedFile, makeCredentials } from "../access/credentials.ts";
import type { ProcessEnvironment } from "../access/proxy.ts";
import { type AnswerHead, ApiExchange } from "./api-exchange.ts";
import type { ApiMetrics } from "./api-metrics.ts";
import { decodeFailure } from "./codec.ts";
import { ConnectionWatch } from "./connection-watch.ts";
import { readWhole } from "./frames.ts";
import { DEFAULT_TIMINGS, type ListWatchTimings } from "./list-watch-timings.ts";
import { RequestLimiter, type RequestLimits } from "./request-limiter.ts";

export interface ApiClientOptions {
  readonly access: ClusterAccess;
  readonly clock: Clock;
  readonly environment: ProcessEnvironment;
  readonly limits: RequestLimits;
  readonly metrics: ApiMetrics;
  readonly userAgent: string;
  readonly timings?: Partial<Pick<ListWatchTimings, "pingIntervalMs" | "connectionSilenceMs">>;
  /** Requests begin in them: those of several watches that end together would hold up everybody else. */
  readonly turns?: SharedTurns;
  /** Called each time that so many octets have come that it may be worth to free those that were read. */
  readonly freeOctets?: () => void;
}

export interface ApiResponse {
  readonly contentType: string;
  /** Throws ApiConnectionError where it breaks off, or the reason of the request's signal. */
  readonly body: AsyncIterable<Uint8Array>;
  /** When the connection was last heard of, answers to pings included, by the clock's `now`; undefined where there are no pings. */
  readonly connectionHeardAt: () => number | undefined;
}

const CONNECT_TIMEOUT_MS = 10_000;
/** The first probe of an idle connection: one whose other end is gone is noticed some ten seconds later. */
const KEEP_ALIVE_MS = 15_000;
const MAX_FAILURE_SIZE = 64 * 1024;
/** Octets between two looks at what is to be freed. */
const FREE_EVERY = 512 * 1024;

/**
 * Octets that the server may send ahead, on a stream and on the connection. What waits here long enough to outlive two young collections is not
 * freed with the others: with undici's 256 and 512 KiB, that was 4 MB after all was listed. A server that is 1 ms away still sends 64 MB a second.
 */
const WINDOWS = { initialWindowSize: 64 * 1024 - 1, connectionWindowSize: 128 * 1024 } as const;

/** PEM in use for connections; new ones replace them when any of it changes. */
interface TlsIdentity {
  readonly authority: string | undefined;
  readonly certificate: string | undefined;
  readonly key: string | undefined;
}

export class ApiClient {
  readonly #options: ApiClientOptions;
  readonly #credentials: Credentials;
  readonly #limiter: RequestLimiter;
  readonly #connections: ConnectionWatch;
  readonly #authority: CachedFile | undefined;
  readonly #certificate: CachedFile | undefined;
  readonly #key: CachedFile | undefined;
  /** What requests go through. Older ones stay until their last request is over. */
  #dispatcher: Dispatcher | undefined;
  #identity: TlsIdentity | undefined;
  readonly #retired = new Set<Dispatcher>();
  #server = 0;
  #octets = 0;
  #stopped = false;

  constructor(options: ApiClientOptions) {
    const { access, clock, environment, limits } = options;
    this.#options = options;
    this.#credentials = makeCredentials(access.credentials, clock, environment);
    this.#limiter = new RequestLimiter(limits, clock);
    const { connectionSilenceMs } = { ...DEFAULT_TIMINGS, ...options.timings };
    this.#connections = new ConnectionWatch(clock, connectionSilenceMs);
    const cached = (material: Material | undefined) =>
      material === undefined ? undefined : new CachedFile(material, clock);
    this.#authority = cached(access.tls.authority);
    this.#certificate = cached(access.tls.certificate);
    this.#key = cached(access.tls.key);
  }

  /** The server that is asked at present. */
  get server(): string {
    return this.#options.access.servers[this.#server] ?? "";
  }

  /**
   * Sends a GET and waits for the headers of the answer.
   * @param goesOn whether it is a part of something that was begun: it does not wait for `apiserver_qps` then
   * @throws ApiStatusError for an answer other than 200
   * @throws ApiConnectionError where there is none
   * @throws CredentialError, or the reason of the signal
   */
  async get(path: string, accept: string, signal: AbortSignal, goesOn = false): Promise<ApiResponse> {
    const { clock, metrics, turns } = this.#options;
    const waited = await this.#limiter.acquire(signal, goesOn);
    try {
      const credential = await this.#credentials.current();
      let dispatcher = await this.#connect(credential);
      if (turns?.isOver === true) {
        await turns.rest();
        dispatcher = await this.#connect(credential);
      }
      const { server } = this;
      const host = new URL(server).host;
      metrics.waited(host, waited);
      const start = clock.now();
      const exchange = new ApiExchange({
        signal,
        brokeOff: (error) => this.#connectionFailed(server, error),
        read: this.#count,
      });
      let head: AnswerHead;
      try {
        dispatcher.dispatch(
          {
            origin: new URL(server).origin,
            path: new URL(server).pathname.replace(/\/$/, "") + path,
            method: "GET",
            headers: this.#headers(accept, credential),
          },
          exchange,
        );
        head = await exchange.head;
      } catch (error) {
        metrics.failed(host, clock.now() - start);
        if (signal.aborted) throw signal.reason;
        throw this.#connectionFailed(server, error);
      }
      metrics.answered(host, head.statusCode, clock.now() - start);
      return await this.#open(head, exchange, server);
    } finally {
      this.#limiter.release();
    }
  }

  /** Ends every connection: one that has gone silent may take the others with it. The next request makes new ones. */
  abandonConnections(): void {
    const dispatcher = this.#dispatcher;
    if (dispatcher === undefined) return;
    this.#dispatcher = undefined;
    void dispatcher.destroy(new Error("the connection went silent")).catch(() => undefined);
    this.#nextServer();
  }

  /** Ends every connection for good. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#limiter.stop();
    this.#connections.stop();
    const all = [...this.#retired, ...(this.#dispatcher === undefined ? [] : [this.#dispatcher])];
    this.#dispatcher = undefined;
    await Promise.allSettled(all.map((dispatcher) => dispatcher.destroy(new Error("the client is stopped"))));
  }

  async #open(
    { statusCode, contentType, retryAfter }: AnswerHead,
    body: AsyncIterable<Uint8Array>,
    server: string,
  ): Promise<ApiResponse> {
    if (statusCode === 200) {
      const { origin } = new URL(server);
      return { contentType, body, connectionHeardAt: () => this.#connections.heardAt(origin) };
    }
    if (statusCode === 401) this.#credentials.refused();
    const octets = await readWhole(body, MAX_FAILURE_SIZE).catch(() => new Uint8Array());
    // What is wrong with one server need not be wrong with the next.
    if (statusCode >= 500) this.#nextServer();
    throw decodeFailure(octets, contentType, statusCode, retryAfter || undefined);
  }

  readonly #count = (octets: number): void => {
    this.#octets += octets;
    if (this.#octets < FREE_EVERY) return;
    this.#octets = 0;
    this.#options.freeOctets?.();
  };

  #headers(accept: string, { authorization }: Credential): string[] {
    const { access, userAgent } = this.#options;
    const headers = ["accept", accept, "user-agent", userAgent];
    if (authorization !== undefined) headers.push("authorization", authorization);
    return [...headers, ...access.headers.flat()];
  }

  #connectionFailed(server: string, error: unknown): ApiConnectionError {
    // A new certificate may be what is missing.
    for (const file of [this.#authority, this.#certificate, this.#key]) file?.forget();
    this.#nextServer();
    return new ApiConnectionError(server, error);
  }

  #nextServer(): void {
    this.#server = (this.#server + 1) % this.#options.access.servers.length;
  }

  async #connect(credential: Credential): Promise<Dispatcher> {
    const identity: TlsIdentity = {
      authority: await readPem(this.#authority, "certificate authority"),
      certificate: credential.certificate ?? (await readPem(this.#certificate, "client certificate")),
      key: credential.key ?? (await readPem(this.#key, "client key")),
    };
    // No wait below, or two would be made at once.
    if (this.#stopped) throw new Error("the client is stopped");
    const dispatcher = this.#dispatcher;
    if (dispatcher !== undefined && this.#identity !== undefined && sameIdentity(this.#identity, identity)) {
      return dispatcher;
    }
    const made = this.#makeDispatcher(identity);
    this.#dispatcher = made;
    this.#identity = identity;
    if (dispatcher !== undefined) this.#retire(dispatcher);
    return made;
  }

  #makeDispatcher(identity: TlsIdentity): Dispatcher {
    // Loaded here and not above: whoever has no cluster need not pay for it.
    const { Agent, buildConnector, ProxyAgent, Socks5ProxyAgent } = loadUndiciParts();
    const { tls, proxy, headers } = this.#options.access;
    const { pingIntervalMs } = { ...DEFAULT_TIMINGS, ...this.#options.timings };
    // Over HTTP/2 undici makes one field of those with the same name, and two groups to act for would be one group "a, b".
    const allowH2 = new Set(headers.map(([name]) => name)).size === headers.length;
    const connect = {
      timeout: CONNECT_TIMEOUT_MS,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_MS,
      rejectUnauthorized: !tls.insecure,
      ...(identity.authority !== undefined && { ca: identity.authority }),
      ...(identity.certificate !== undefined && { cert: identity.certificate }),
      ...(identity.key !== undefined && { key: identity.key }),
      ...(tls.serverName !== undefined && { servername: tls.serverName }),
    };
    const options = {
      allowH2,
      // The watchdog of each request has the time limits.
      headersTimeout: 0,
      bodyTimeout: 0,
      h2Options: { pingInterval: pingIntervalMs, ...WINDOWS },
    };
    if (proxy === undefined)
      return new Agent({ ...options, connect: this.#watched(buildConnector({ ...connect, allowH2 })) });
    if (proxy.startsWith("socks5:")) return new Socks5ProxyAgent(proxy, { requestTls: connect });
    return new ProxyAgent({ ...options, uri: proxy, requestTls: connect });
  }

  /** Has every connection watched that is made. Through proxies undici makes them itself. */
  #watched(connect: buildConnector.connector): buildConnector.connector {
    return (options, callback) => {
      connect(options, (...made) => {
        const [error, socket] = made;
        if (error === null && socket !== null)
          this.#connections.add(socket, `${options.protocol}//${options.host}`);
        callback(...made);
      });
    };
  }

  #retire(dispatcher: Dispatcher): void {
    this.#retired.add(dispatcher);
    void dispatcher
      .close()
      .catch(() => undefined)
      .finally(() => this.#retired.delete(dispatcher));
  }
}

async function readPem(file: CachedFile | undefined, what: string): Promise<string | undefined> {
  if (file === undefined) return undefined;
  try {
    return Buffer.from(await file.read()).toString("latin1");
  } catch (error) {
    throw new CredentialError(`cannot read the ${what} ${file.file}: ${fileFault(error)}`);
  }
}

function sameIdentity(left: TlsIdentity, right: TlsIdentity): boolean {
  return (
    left.authority === right.authority && left.certificate === right.certificate && left.key === right.key
  );
}
