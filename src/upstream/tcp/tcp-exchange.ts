/**
 * Queries to an upstream over TCP, or TLS over TCP. Connections stay open and carry several queries at a time (RFC 7766 sections
 * 6.2.1 and 7). A connection that the peer closes under a query is not a failure of the upstream. A silent one is: each query on it
 * waits for its own timeout, and then goes to the next upstream.
 */
import { readU16 } from "../../dns/octets.ts";
import { Backlog } from "../../lib/collections/backlog.ts";
import { BufferPool, type PooledBuffer } from "../../lib/collections/buffer-pool.ts";
import type { Timer } from "../../lib/time/clock.ts";
import type { TimeoutHandle } from "../../lib/time/timeout-wheel.ts";
import { SharedTurns } from "../../lib/time/turn-share.ts";
import type { ConnectBackOff } from "../exchange/connect-back-off.ts";
import { DialTimeout } from "../exchange/dial-timeout.ts";
import {
  type Exchange,
  type ExchangeOptions,
  isReply,
  isTransfer,
  SHORTEST_MESSAGE,
  type UpstreamRequest,
} from "../exchange/exchange.ts";
import { describeSystemError, ExchangeError, type ExchangeFault } from "../exchange/exchange-error.ts";
import { IdTable } from "../exchange/id-table.ts";
import { type ConnectionOwner, PLAIN_TCP, type StreamDialler, TcpConnection } from "./tcp-connection.ts";

export interface TcpExchangeOptions extends ExchangeOptions {
  /** Idle connections kept; 0 for no limit. */
  readonly maxIdle: number;
  /** Default: plain TCP. */
  readonly dialler?: StreamDialler;
  /** For connections with expensive handshakes. */
  readonly backOff?: ConnectBackOff;
}

/** Connections to open before queries share one. */
export const SHARED_CONNECTIONS = 8;
/** All connections, including those to a peer that takes one query at a time, and those that only wait for their last answer. */
export const MAX_CONNECTIONS = 64;
/** Queries in flight on one connection. */
export const PIPELINE_DEPTH = 256;
/** A single connection may end at a bad moment by chance; several in a row are a pattern. */
const LEFT_EARLY_LIMIT = 2;
const MAX_PENDING = SHARED_CONNECTIONS * PIPELINE_DEPTH;
/** Resends of a query whose connections broke without fault of the upstream. */
export const MAX_RETRIES = 8;
const SWEEP_INTERVAL = 1_000;
const INBOX_OCTETS = 64 * 1024;
/** Milliseconds of an event-loop turn for passing on answers and reporting failures: there may be hundreds at a time. */
const TOLD_IN_TURN = 0.5;

/**
 * A query whose connection is gone. It may be abandoned, and its object reused, before the failure is reported, so it is identified
 * by its id.
 */
interface Orphan {
  readonly id: number;
  readonly connection: TcpConnection;
  readonly settle: (request: UpstreamRequest) => void;
}

export class TcpExchange implements Exchange {
  readonly protocol: string;
  readonly #dialler: StreamDialler;
  readonly #options: TcpExchangeOptions;
  readonly #pending = new IdTable<UpstreamRequest>(MAX_PENDING);
  /** Oldest first. */
  readonly #connections: TcpConnection[] = [];
  readonly #dialTimers = new Map<TcpConnection, TimeoutHandle>();
  readonly #dialTimeout = new DialTimeout();
  readonly #draw: () => number;
  readonly #owner: ConnectionOwner;
  readonly #orphans: Backlog<Orphan>;
  #pipelineDepth = PIPELINE_DEPTH;
  /** Connections in a row that the peer closed after its first answer, with further queries in flight. */
  #leftEarly = 0;
  #sweep: Timer | undefined;
  #closed = false;

  constructor(options: TcpExchangeOptions) {
    this.#options = options;
    this.#dialler = options.dialler ?? PLAIN_TCP;
    this.protocol = this.#dialler.protocol;
    this.#draw = () => options.random.unpredictable();
    let inbox: Uint8Array | undefined;
    const turns = new SharedTurns(options.clock, TOLD_IN_TURN);
    this.#orphans = new Backlog(turns, (orphan) => this.#settle(orphan));
    this.#owner = {
      turns,
      connected: (connection) => this.#connected(connection),
      buffers: new BufferPool(),
      get inbox() {
        inbox ??= Buffer.allocUnsafeSlow(INBOX_OCTETS);
        return inbox;
      },
      received: (connection, message, lent) => this.#received(connection, message, lent),
      timedOut: (connection, request) => this.#timedOut(connection, request),
      letGo: (connection, request) => this.#letGo(connection, request),
      lost: (connection, error) => this.#lost(connection, error),
    };
  }

  /** Queries in flight. */
  get pending(): number {
    return this.#pending.size;
  }

  /** Connections that are open or being opened. */
  get openConnections(): number {
    return this.#connections.length;
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
    const requests = this.#pending.select(() => true);
    for (const request of requests) this.#release(request);
    for (const request of requests)
      request.failed(this.#error("closed", `${this.#options.remote.text} is no longer in use`));
  }

  #dispatch(request: UpstreamRequest): void {
    const connection =
      this.#closed || this.#pending.isFull ? undefined : this.#choose(request.retries > 0, request.isProbe);
    if (connection === undefined) {
      this.#refuse(request);
      return;
    }
    const now = this.#options.clock.turnTime();
    const id = this.#pending.claim(request, this.#draw(), this.#draw, now);
    request.id = id;
    request.carrier = connection;
    request.answersBefore = connection.answers;
    const patience = connection.state === "open" ? request.readTimeout : request.connectTimeout;
    if (request.retries === 0) request.deadline = now + patience;
    this.#options.wheel.scheduleItself(Math.max(request.deadline - now, 0), request);
    connection.inFlight++;
    // The rest of a transfer has the same id, which must not be reused on this connection.
    if (isTransfer(request)) connection.retired = true;
    connection.write(request.bytes, request.length, request.questionEnd, id);
  }

  /** The oldest idle connection, else a new one while there are few, else the one with the fewest queries. */
  #choose(preferNew: boolean, isProbe: boolean): TcpConnection | undefined {
    const now = this.#options.clock.now();
    let least: TcpConnection | undefined;
    let usable = 0;
    for (let index = 0; index < this.#connections.length; index++) {
      const connection = this.#connections[index];
      if (connection === undefined || !this.#isUsable(connection, now)) continue;
      if (connection.inFlight === 0 && !preferNew) {
        if (!isProbe) this.#options.metrics.hits.increment();
        return connection;
      }
      usable++;
      if (least === undefined || connection.inFlight < least.inFlight) least = connection;
    }
    const wanted = this.#pipelineDepth === 1 ? MAX_CONNECTIONS : SHARED_CONNECTIONS;
    const mayOpen = this.#options.backOff?.refusal(now) === undefined;
    if (usable < wanted && this.#connections.length < MAX_CONNECTIONS && mayOpen) {
      if (!isProbe) this.#options.metrics.misses.increment();
      return this.#open(now);
    }
    if (least === undefined || least.inFlight >= this.#pipelineDepth) return undefined;
    if (!isProbe) this.#options.metrics.hits.increment();
    return least;
  }

  #isUsable(connection: TcpConnection, now: number): boolean {
    if (connection.retired || connection.blocked) return false;
    const { expire, maxAge } = this.#options;
    if (maxAge > 0 && now - connection.openedAt >= maxAge) return false;
    return (
      connection.inFlight > 0 || connection.state === "connecting" || now - connection.idleSince < expire
    );
  }

  #open(now: number): TcpConnection {
    const { remote, sourceAddress, wheel, clock } = this.#options;
    const connection = new TcpConnection(this.#owner, remote, sourceAddress, now, this.#dialler);
    this.#connections.push(connection);
    this.#dialTimers.set(
      connection,
      wheel.schedule(this.#dialTimeout.current, { expired: () => this.#dialTimedOut(connection) }),
    );
    this.#sweep ??= clock.every(SWEEP_INTERVAL, () => this.#sweepConnections());
    return connection;
  }

  #connected(connection: TcpConnection): void {
    this.#endDial(connection);
    this.#options.backOff?.succeeded();
    const { wheel, clock } = this.#options;
    for (const request of this.#pending.select((waiting) => waiting.carrier === connection)) {
      if (request.retries > 0) continue;
      wheel.cancel(request);
      request.deadline = clock.turnTime() + request.readTimeout;
      wheel.scheduleItself(request.readTimeout, request);
    }
    if (connection.inFlight === 0) this.#becomeIdle(connection);
  }

  #received(connection: TcpConnection, message: Uint8Array, lent: PooledBuffer | undefined): void {
    connection.answers++;
    if (connection.answers === 2) {
      this.#leftEarly = 0;
      this.#pipelineDepth = PIPELINE_DEPTH;
    }
    if (message.length < SHORTEST_MESSAGE) {
      lent?.takeBack();
      this.#options.metrics.short.increment();
      return;
    }
    const request = this.#pending.get(readU16(message, 0));
    if (request === undefined || request.carrier !== connection) {
      // Too late, as most answers of a slow upstream are.
      lent?.takeBack();
      this.#options.metrics.unknownId.increment();
      return;
    }
    if (!isReply(request, message, message.length, this.#options.metrics)) {
      lent?.takeBack();
      return;
    }
    this.#release(request);
    if (--connection.inFlight === 0) this.#becomeIdle(connection);
    request.answered(message, lent);
  }

  #timedOut(connection: TcpConnection, request: UpstreamRequest): void {
    const dialling = connection.state === "connecting";
    const message = dialling
      ? `dial tcp ${this.#options.remote.text}: i/o timeout`
      : `read ${this.#way(connection)}: i/o timeout`;
    const silent = connection.answers === request.answersBefore;
    // Silent since the query was sent: the connection is probably dead. Other queries on it may still be answered.
    if (silent && connection.state === "open") this.#distrust(connection, request);
    this.#letGo(connection, request);
    request.failed(this.#error(dialling ? "connect" : "timeout", message));
  }

  #letGo(connection: TcpConnection, request: UpstreamRequest): void {
    this.#release(request);
    if (--connection.inFlight === 0 && connection.state === "open") this.#becomeIdle(connection);
  }

  /** Sends no further query over a silent connection, nor over those whose last message is older than its silence. */
  #distrust(silent: TcpConnection, request: UpstreamRequest): void {
    silent.retired = true;
    const sentAt = request.deadline - request.readTimeout;
    for (const connection of [...this.#connections]) {
      if (connection.inFlight === 0 && connection.state === "open" && connection.idleSince <= sentAt)
        this.#drop(connection);
    }
  }

  #dialTimedOut(connection: TcpConnection): void {
    this.#endDial(connection);
    this.#fail(connection, "connect", `dial tcp ${this.#options.remote.text}: i/o timeout`);
  }

  #lost(connection: TcpConnection, cause: Error | undefined): void {
    const { text } = this.#options.remote;
    const dialling = connection.state === "connecting";
    if (dialling) this.#endDial(connection);
    // The peer answers one query and closes, repeatedly: it gets one query at a time until it answers two on a connection.
    const leftEarly = connection.answers === 1 && connection.inFlight > 0 && cause === undefined;
    if (leftEarly && ++this.#leftEarly >= LEFT_EARLY_LIMIT) this.#pipelineDepth = 1;
    if (connection.answers > 0) {
      this.#abandon(connection);
      return;
    }
    const message =
      cause === undefined
        ? "EOF"
        : (this.#dialler.describe(cause) ??
          (dialling
            ? `dial tcp ${text}: connect: ${describeSystemError(cause)}`
            : `read ${this.#way(connection)}: read: ${describeSystemError(cause)}`));
    this.#fail(connection, dialling ? "connect" : "broken", message, cause);
  }

  /** Closes a connection and fails the queries on it. */
  #fail(connection: TcpConnection, fault: ExchangeFault, message: string, cause?: Error): void {
    this.#drop(connection);
    if (fault === "connect") this.#options.backOff?.failed(this.#options.clock.now(), message);
    const error = this.#error(fault, message, cause);
    this.#orphan(connection, (request) => request.failed(error));
  }

  /** Closes a connection and resends the queries on it over another one. */
  #abandon(connection: TcpConnection): void {
    this.#drop(connection);
    this.#orphan(connection, (request) => {
      if (request.retries++ < MAX_RETRIES) this.#dispatch(request);
      else request.failed(this.#error("broken", "EOF"));
    });
  }

  #orphan(connection: TcpConnection, settle: (request: UpstreamRequest) => void): void {
    const requests = this.#pending.select(({ carrier }) => carrier === connection);
    this.#orphans.add(requests.map(({ id }) => ({ id, connection, settle })));
  }

  #settle({ id, connection, settle }: Orphan): void {
    const request = this.#pending.get(id);
    if (request?.carrier !== connection) return;
    this.#release(request);
    settle(request);
  }

  #becomeIdle(connection: TcpConnection): void {
    const { clock, maxAge, maxIdle } = this.#options;
    connection.idleSince = clock.now();
    const tooOld = maxAge > 0 && connection.idleSince - connection.openedAt >= maxAge;
    if (connection.retired || tooOld || (maxIdle > 0 && this.#idleCount() > maxIdle)) this.#drop(connection);
  }

  #idleCount(): number {
    let count = 0;
    for (const { inFlight, state } of this.#connections) if (inFlight === 0 && state === "open") count++;
    return count;
  }

  #sweepConnections(): void {
    const now = this.#options.clock.now();
    for (const connection of [...this.#connections]) {
      if (connection.inFlight === 0 && connection.state === "open" && !this.#isUsable(connection, now))
        this.#drop(connection);
    }
    if (this.#connections.length > 0) return;
    this.#sweep?.cancel();
    this.#sweep = undefined;
  }

  #drop(connection: TcpConnection): void {
    const index = this.#connections.indexOf(connection);
    if (index >= 0) this.#connections.splice(index, 1);
    const timer = this.#dialTimers.get(connection);
    if (timer !== undefined) this.#options.wheel.cancel(timer);
    this.#dialTimers.delete(connection);
    connection.close();
  }

  #endDial(connection: TcpConnection): void {
    const timer = this.#dialTimers.get(connection);
    if (timer !== undefined) this.#options.wheel.cancel(timer);
    this.#dialTimers.delete(connection);
    this.#dialTimeout.record(this.#options.clock.now() - connection.openedAt);
  }

  #release(request: UpstreamRequest): void {
    this.#pending.release(request.id, this.#options.clock.turnTime() + request.readTimeout);
    this.#options.wheel.cancel(request);
    request.carrier = undefined;
  }

  #refuse(request: UpstreamRequest): void {
    const { text } = this.#options.remote;
    const refusal = this.#options.backOff?.refusal(this.#options.clock.now());
    const error = this.#closed
      ? this.#error("closed", `${text} is no longer in use`)
      : refusal !== undefined && !this.#pending.isFull
        ? this.#error("connect", refusal)
        : this.#error("busy", `${this.#pending.size} queries wait for ${text} over tcp already`);
    queueMicrotask(() => request.failed(error));
  }

  #way(connection: TcpConnection): string {
    return `tcp ${connection.localText}->${this.#options.remote.text}`;
  }

  #error(fault: ExchangeFault, message: string, cause?: Error): ExchangeError {
    return new ExchangeError(fault, this.protocol, this.#options.remote.text, message, { cause });
  }
}
