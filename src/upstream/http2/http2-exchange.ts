/**
 * DNS messages over HTTP/2: one connection, a stream for each query. A connection that goes away under a query that the server has not
 * taken is replaced; one that says nothing gets no further queries.
 */
import { constants } from "node:http2";
import { readU16 } from "../../dns/octets.ts";
import type { Timer } from "../../lib/clock.ts";
import type { ConnectBackOff } from "../connect-back-off.ts";
import {
  type Exchange,
  type ExchangeOptions,
  isReply,
  type RequestCarrier,
  SHORTEST_MESSAGE,
  type UpstreamRequest,
} from "../exchange.ts";
import { ExchangeError, type ExchangeFault } from "../exchange-error.ts";
import type { Http2Dialect } from "./dialect.ts";
import { Http2Connection, type Http2ConnectionOwner } from "./http2-connection.ts";
import { Http2Query } from "./http2-query.ts";

export interface Http2ExchangeOptions extends ExchangeOptions {
  readonly dialect: Http2Dialect;
  readonly backOff: ConnectBackOff;
}

/** Queries in flight. */
export const MAX_STREAMS = 2_048;
/** Connections open at a time, those included that only wait for their last answers. */
const MAX_CONNECTIONS = 16;
/** How often a query is sent anew because its connection went away without fault of the upstream. */
const MAX_RETRIES = 2;
const SWEEP_INTERVAL = 1_000;

export class Http2Exchange implements Exchange {
  readonly protocol: string;
  readonly #options: Http2ExchangeOptions;
  readonly #dialect: Http2Dialect;
  /** Gets new queries. */
  #current: Http2Connection<Http2Query> | undefined;
  readonly #connections = new Set<Http2Connection<Http2Query>>();
  #sweep: Timer | undefined;
  #closed = false;
  readonly #owner: Http2ConnectionOwner<Http2Query> = {
    connected: (connection) => this.#connected(connection),
    lost: (connection, reason, unheard) => this.#lost(connection, reason, unheard),
  };
  readonly #carrier: RequestCarrier = {
    timedOut: (request) => this.#timedOut(request),
    letGo: (request) => this.#letGo(request),
  };
  readonly #queries = new Map<UpstreamRequest, Http2Query>();

  constructor(options: Http2ExchangeOptions) {
    this.#options = options;
    this.#dialect = options.dialect;
    this.protocol = options.dialect.protocol;
  }

  /** Queries in flight. */
  get pending(): number {
    return this.#queries.size;
  }

  get openConnections(): number {
    return this.#connections.size;
  }

  send(request: UpstreamRequest, readTimeout: number, connectTimeout: number): void {
    request.readTimeout = readTimeout;
    request.connectTimeout = connectTimeout;
    request.retries = 0;
    this.#dispatch(request);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#sweep?.cancel();
    for (const connection of [...this.#connections]) this.#drop(connection);
    for (const request of [...this.#queries.keys()]) this.#fail(request, "closed", this.#gone());
  }

  #dispatch(request: UpstreamRequest): void {
    const isFull = this.#closed || this.#queries.size >= MAX_STREAMS;
    const connection = isFull ? undefined : this.#connection(request.isProbe);
    if (connection === undefined) {
      this.#refuse(request);
      return;
    }
    const now = this.#options.clock.turnTime();
    const patience = connection.isOpen ? request.readTimeout : request.connectTimeout;
    if (request.retries === 0) request.deadline = now + patience;
    request.carrier = this.#carrier;
    this.#options.wheel.scheduleItself(Math.max(request.deadline - now, 0), request);
    const query = new Http2Query(request, connection, this.#dialect.reader(request), {
      answered: (message) => this.#answered(query, message),
      failed: (reason) => this.#failed(query, reason),
      refused: () => this.#retry(query),
    });
    this.#queries.set(request, query);
    connection.begin(query, this.#dialect.headers(request), this.#dialect.body(request));
  }

  #connection(isProbe: boolean): Http2Connection<Http2Query> | undefined {
    const { clock, metrics, maxAge, expire } = this.#options;
    const now = clock.now();
    const current = this.#current;
    const isOver =
      current !== undefined &&
      (!current.isUsable ||
        (maxAge > 0 && now - current.openedAt >= maxAge) ||
        (current.isOpen && current.inFlight === 0 && now - current.idleSince >= expire));
    if (current !== undefined && isOver) this.#retire(current);
    else if (current !== undefined) {
      if (!isProbe) metrics.hits.increment();
      return current;
    }
    if (this.#connections.size >= MAX_CONNECTIONS) return undefined;
    if (this.#options.backOff.refusal(now) !== undefined) return undefined;
    if (!isProbe) metrics.misses.increment();
    const socket = this.#dialect.dial(this.#options.remote, this.#options.sourceAddress);
    const opened = new Http2Connection(this.#owner, this.#options.remote, socket, now, {
      wheel: this.#options.wheel,
    });
    this.#current = opened;
    this.#connections.add(opened);
    this.#sweep ??= clock.every(SWEEP_INTERVAL, () => this.#sweepConnections());
    return opened;
  }

  #connected(connection: Http2Connection<Http2Query>): void {
    this.#options.backOff.succeeded();
    const { wheel, clock } = this.#options;
    const now = clock.turnTime();
    for (const query of connection.queries) {
      const { request } = query;
      if (request.retries > 0) continue;
      wheel.cancel(request);
      request.deadline = now + request.readTimeout;
      wheel.scheduleItself(request.readTimeout, request);
    }
  }

  #answered(query: Http2Query, message: Uint8Array): void {
    const { request } = query;
    const { metrics } = this.#options;
    if (message.length < SHORTEST_MESSAGE) {
      metrics.short.increment();
      this.#failed(query, "short message");
    } else if (this.#dialect.keepsId && readU16(message, 0) !== readU16(request.bytes, 0)) {
      metrics.unknownId.increment();
      request.mismatched(message, message.length);
      this.#failed(query, "reply to another query");
    } else if (isReply(request, message, message.length, metrics)) {
      this.#release(query);
      request.answered(message);
    } else {
      // Nothing else comes on this stream.
      this.#failed(query, "reply to another question");
    }
  }

  #failed(query: Http2Query, reason: string): void {
    this.#release(query);
    this.#tell(query.request, "broken", this.#dialect.describe(reason));
  }

  /** The server took no notice of the query. */
  #retry(query: Http2Query): void {
    this.#release(query);
    if (query.request.retries++ < MAX_RETRIES) this.#dispatch(query.request);
    else this.#tell(query.request, "broken", this.#dialect.describe("http2: server refused the stream"));
  }

  #timedOut(request: UpstreamRequest): void {
    const query = this.#queries.get(request);
    if (query === undefined) return;
    const { connection } = query;
    const dialling = !connection.isOpen;
    // Nothing came since the query went: further ones are better off on another connection.
    if (!dialling && connection.heard === query.heardBefore) this.#retire(connection);
    query.cancel(constants.NGHTTP2_CANCEL);
    this.#release(query);
    const reason = dialling ? `dial tcp ${this.#options.remote.text}: i/o timeout` : this.#dialect.late;
    this.#tell(request, dialling ? "connect" : "timeout", this.#dialect.describe(reason));
  }

  #letGo(request: UpstreamRequest): void {
    const query = this.#queries.get(request);
    if (query === undefined) return;
    query.cancel(constants.NGHTTP2_CANCEL);
    this.#release(query);
  }

  #lost(connection: Http2Connection<Http2Query>, reason: string, unheard: readonly Http2Query[]): void {
    const dialling = !connection.isOpen;
    const served = connection.heard > 0;
    this.#drop(connection);
    if (dialling) this.#options.backOff.failed(this.#options.clock.now(), this.#dialect.describe(reason));
    for (const query of unheard) {
      if (!dialling && served) this.#retry(query);
      else {
        this.#release(query);
        this.#tell(query.request, dialling ? "connect" : "broken", this.#dialect.describe(reason));
      }
    }
  }

  #release(query: Http2Query): void {
    const { request, connection } = query;
    if (!this.#queries.delete(request)) return;
    this.#options.wheel.cancel(request);
    request.carrier = undefined;
    connection.ended(query, this.#options.clock.now());
    if (connection.isRetired && connection.inFlight === 0) this.#drop(connection);
  }

  #fail(request: UpstreamRequest, fault: ExchangeFault, message: string): void {
    const query = this.#queries.get(request);
    if (query !== undefined) this.#release(query);
    this.#tell(request, fault, message);
  }

  #retire(connection: Http2Connection<Http2Query>): void {
    if (this.#current === connection) this.#current = undefined;
    connection.isRetired = true;
    if (connection.inFlight === 0) this.#drop(connection);
  }

  #drop(connection: Http2Connection<Http2Query>): void {
    if (this.#current === connection) this.#current = undefined;
    connection.isRetired = true;
    if (this.#connections.delete(connection)) connection.close();
  }

  #sweepConnections(): void {
    const { clock, expire } = this.#options;
    const now = clock.now();
    for (const connection of [...this.#connections]) {
      const idle = connection.inFlight === 0 && now - connection.idleSince >= expire;
      if (connection.isRetired || (connection.isOpen && idle)) this.#retire(connection);
    }
    if (this.#connections.size > 0) return;
    this.#sweep?.cancel();
    this.#sweep = undefined;
  }

  #refuse(request: UpstreamRequest): void {
    const refusal = this.#options.backOff.refusal(this.#options.clock.now());
    const [fault, message] = this.#closed
      ? (["closed", this.#gone()] as const)
      : refusal !== undefined && this.#queries.size < MAX_STREAMS
        ? (["connect", refusal] as const)
        : ([
            "busy",
            `${this.#queries.size} queries wait for ${this.#options.remote.text} over ${this.protocol} already`,
          ] as const);
    queueMicrotask(() => this.#tell(request, fault, message));
  }

  #tell(request: UpstreamRequest, fault: ExchangeFault, message: string): void {
    request.failed(new ExchangeError(fault, this.protocol, this.#options.remote.text, message));
  }

  #gone(): string {
    return `${this.#options.remote.text} is not used any more`;
  }
}
