/**
 * Exchanges with many queries at a time on a connection, each on its own stream: HTTP/2, QUIC. If a connection ends before the
 * server has processed a query, the query is resent on another one. A silent connection gets no further queries.
 */
import { readU16 } from "../../dns/octets.ts";
import { Backlog } from "../../lib/collections/backlog.ts";
import type { Timer } from "../../lib/time/clock.ts";
import { SharedTurns } from "../../lib/time/turn-share.ts";
import type { ConnectBackOff } from "./connect-back-off.ts";
import {
  type Exchange,
  type ExchangeOptions,
  isReply,
  type RequestCarrier,
  SHORTEST_MESSAGE,
  type UpstreamRequest,
} from "./exchange.ts";
import { ExchangeError, type ExchangeFault } from "./exchange-error.ts";

export interface MultiplexedOptions extends ExchangeOptions {
  readonly backOff: ConnectBackOff;
}

/** A connection as the exchange sees it. */
export interface MultiplexedConnection<Query> {
  /** On the clock. */
  readonly openedAt: number;
  /** On the clock, when the last query ended. */
  readonly idleSince: number;
  /** Whether the handshake is done. */
  readonly isOpen: boolean;
  /** Whether it may carry another query. */
  readonly isUsable: boolean;
  /** Gets no further queries. */
  isRetired: boolean;
  /** Grows with everything received from the server. */
  readonly heard: number;
  readonly inFlight: number;
  readonly queries: Iterable<Query>;
  ended(query: Query, now: number): void;
  close(): void;
}

/** Receives the events of a connection. */
export interface MultiplexedOwner<Connection, Query> {
  connected(connection: Connection): void;
  /** Called once, unless the owner closed the connection. */
  lost(connection: Connection, reason: string, queries: readonly Query[]): void;
}

/** A query on its stream. */
export interface MultiplexedQuery<Connection> {
  readonly request: UpstreamRequest;
  readonly connection: Connection;
  /** The connection's {@link MultiplexedConnection.heard} when the query was sent. */
  readonly heardBefore: number;
  /** Abandons the query without a callback. */
  cancel(): void;
}

/** Receives the outcome of a query, once. */
export interface MultiplexedQueryOwner {
  answered(message: Uint8Array): void;
  failed(reason: string): void;
  /** The server has not processed the query: it may be resent. */
  refused(): void;
}

/** Queries in flight. */
export const MAX_STREAMS = 2_048;
/** Open connections, including those that only wait for their last answers. */
const MAX_CONNECTIONS = 16;
/** Resends of a query whose connections ended without fault of the upstream. */
const MAX_RETRIES = 2;
const SWEEP_INTERVAL = 1_000;
/** Milliseconds of an event-loop turn in which failures are reported. */
const TOLD_IN_TURN = 0.5;

/** A query whose connection is gone. */
interface Orphan<Query> {
  readonly query: Query;
  readonly settle: (query: Query) => void;
}

export abstract class MultiplexedExchange<
  Connection extends MultiplexedConnection<Query>,
  Query extends MultiplexedQuery<Connection>,
> implements Exchange
{
  abstract readonly protocol: string;
  readonly #options: MultiplexedOptions;
  /** Gets new queries. */
  #current: Connection | undefined;
  readonly #connections = new Set<Connection>();
  #sweep: Timer | undefined;
  #closed = false;
  readonly #owner: MultiplexedOwner<Connection, Query> = {
    connected: (connection) => this.#connected(connection),
    lost: (connection, reason, unheard) => this.#lost(connection, reason, unheard),
  };
  readonly #carrier: RequestCarrier = {
    timedOut: (request) => this.#timedOut(request),
    letGo: (request) => this.#letGo(request),
  };
  readonly #queries = new Map<UpstreamRequest, Query>();
  readonly #orphans: Backlog<Orphan<Query>>;

  constructor(options: MultiplexedOptions) {
    this.#options = options;
    this.#orphans = new Backlog(new SharedTurns(options.clock, TOLD_IN_TURN), ({ query, settle }) => {
      // Skips queries that were abandoned or answered in between.
      if (this.#queries.get(query.request) === query) settle(query);
    });
  }

  /** Opens a connection, which reports to `owner`. */
  protected abstract dial(owner: MultiplexedOwner<Connection, Query>, now: number): Connection;
  /** Prepares a query; {@link begin} sends it. */
  protected abstract query(
    request: UpstreamRequest,
    connection: Connection,
    owner: MultiplexedQueryOwner,
  ): Query;
  protected abstract begin(query: Query): void;
  /** Whether replies have the id of the query; otherwise their id is 0. */
  protected abstract get keepsId(): boolean;
  /** The log's words for a timeout. */
  protected abstract get late(): string;
  /** A fault in the words of the log. */
  protected abstract describe(reason: string): string;

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
    this.#orphans.clear();
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
    const query: Query = this.query(request, connection, {
      answered: (message) => this.#answered(query, message),
      failed: (reason) => this.#failed(query, reason),
      refused: () => this.#retry(query, "the server refused the stream"),
    });
    this.#queries.set(request, query);
    this.begin(query);
  }

  #connection(isProbe: boolean): Connection | undefined {
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
    const opened = this.dial(this.#owner, now);
    this.#current = opened;
    this.#connections.add(opened);
    this.#sweep ??= clock.every(SWEEP_INTERVAL, () => this.#sweepConnections());
    return opened;
  }

  #connected(connection: Connection): void {
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

  #answered(query: Query, message: Uint8Array): void {
    const { request } = query;
    const { metrics } = this.#options;
    if (message.length < SHORTEST_MESSAGE) {
      metrics.short.increment();
      this.#failed(query, "short message");
    } else if (this.keepsId && readU16(message, 0) !== readU16(request.bytes, 0)) {
      metrics.unknownId.increment();
      request.mismatched(message, message.length);
      this.#failed(query, "reply to another query");
    } else if (isReply(request, message, message.length, metrics)) {
      this.#release(query);
      request.answered(message);
    } else {
      // A stream carries only one reply.
      this.#failed(query, "reply to another question");
    }
  }

  #failed(query: Query, reason: string): void {
    this.#release(query);
    this.#tell(query.request, "broken", this.describe(reason));
  }

  /** The server did not process the query. @param reason for the failure after too many resends */
  #retry(query: Query, reason: string): void {
    this.#release(query);
    if (query.request.retries++ < MAX_RETRIES) this.#dispatch(query.request);
    else this.#tell(query.request, "broken", this.describe(reason));
  }

  #timedOut(request: UpstreamRequest): void {
    const query = this.#queries.get(request);
    if (query === undefined) return;
    const { connection } = query;
    const dialling = !connection.isOpen;
    // Silent since the query was sent: other queries use another connection.
    if (!dialling && connection.heard === query.heardBefore) this.#retire(connection);
    query.cancel();
    this.#release(query);
    const reason = dialling ? `dial tcp ${this.#options.remote.text}: i/o timeout` : this.late;
    this.#tell(request, dialling ? "connect" : "timeout", this.describe(reason));
  }

  #letGo(request: UpstreamRequest): void {
    const query = this.#queries.get(request);
    if (query === undefined) return;
    query.cancel();
    this.#release(query);
  }

  #lost(connection: Connection, reason: string, unheard: readonly Query[]): void {
    const dialling = !connection.isOpen;
    const served = connection.heard > 0;
    this.#drop(connection);
    if (dialling) this.#options.backOff.failed(this.#options.clock.now(), this.describe(reason));
    const settle = (query: Query): void => {
      if (!dialling && served) this.#retry(query, reason);
      else {
        this.#release(query);
        this.#tell(query.request, dialling ? "connect" : "broken", this.describe(reason));
      }
    };
    this.#orphans.add(unheard.map((query) => ({ query, settle })));
  }

  #release(query: Query): void {
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

  #retire(connection: Connection): void {
    if (this.#current === connection) this.#current = undefined;
    connection.isRetired = true;
    if (connection.inFlight === 0) this.#drop(connection);
  }

  #drop(connection: Connection): void {
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
    return `${this.#options.remote.text} is no longer in use`;
  }
}
