/**
 * Queries to an upstream over UDP. A few sockets carry many queries each, which is far cheaper than a socket per query.
 * Unpredictable ids and changing ports make answers hard to forge (RFC 5452). The README of `forward` has the numbers.
 */
import { readU16 } from "../../dns/octets.ts";
import type { Timer } from "../../lib/time/clock.ts";
import {
  type Exchange,
  type ExchangeOptions,
  isReply,
  type RequestCarrier,
  SHORTEST_MESSAGE,
  type UpstreamRequest,
} from "../exchange/exchange.ts";
import { describeSystemError, ExchangeError } from "../exchange/exchange-error.ts";
import { IdTable } from "../exchange/id-table.ts";
import type { DatagramListener, DatagramPort, OpenDatagramPort } from "./datagram-port.ts";
import { openDgramPort } from "./datagram-port.ts";

export interface UdpExchangeOptions extends ExchangeOptions {
  readonly openPort?: OpenDatagramPort;
}

/** Sockets in use at a time; a power of two. */
export const SOCKET_COUNT = 4;
/** A socket is replaced after this many to twice this many queries. */
export const QUERIES_PER_SOCKET = 1_024;
/** Milliseconds after which a socket is replaced, give or take the interval of the check. */
export const SOCKET_LIFETIME = 5_000;
/** Open sockets, including those that only wait for their last answers. */
export const MAX_OPEN_SOCKETS = 128;
/** Queries in flight. */
export const MAX_PENDING_DATAGRAMS = 16_384;
/** The maximum of an IPv4 datagram. */
const LONGEST_DATAGRAM = 65_507;
const SWEEP_INTERVAL = 1_000;
/** Milliseconds of an event-loop turn in which a socket's failure is reported to its queries. */
const FAILING_SHARE = 0.5;
/** Failures reported between two looks at the clock: each query may go to the next upstream, or answer its client and be logged. */
const FAILURES_A_LOOK = 4;

export class UdpExchange implements Exchange {
  readonly protocol = "udp";
  readonly #options: UdpExchangeOptions;
  readonly #openPort: OpenDatagramPort;
  readonly #lifetime: number;
  readonly #pending = new IdTable<UpstreamRequest>(MAX_PENDING_DATAGRAMS);
  /** The sockets for new queries; the place is drawn at random. */
  readonly #current: (UdpChannel | undefined)[] = Array.from({ length: SOCKET_COUNT });
  /**
   * All queries at one time use one socket, because a batch costs little more than a single query. A spoofed reply has to hit one
   * of the sockets either way, so this costs no safety. Rotating through the sockets spreads load on upstreams that hash by source port.
   */
  #place = 0;
  #turn = Number.NaN;
  /** All open sockets, also those that get no further queries. */
  readonly #channels = new Set<UdpChannel>();
  readonly #draw: () => number;
  readonly #owner: ChannelOwner = {
    received: (channel, bytes, length) => this.#received(channel, bytes, length),
    failed: (channel, error, usable) => this.#failed(channel, error, usable),
    timedOut: (channel, request) => this.#timedOut(channel, request),
    letGo: (channel, request) => this.#release(request, channel),
  };
  #sweep: Timer | undefined;
  /** Failed sockets with queries that are still to be notified. */
  #failing: UdpChannel[] = [];
  /** Runs while they wait for a later turn. */
  #failLater: Timer | undefined;
  #closed = false;

  constructor(options: UdpExchangeOptions) {
    this.#options = options;
    this.#openPort = options.openPort ?? openDgramPort;
    this.#lifetime = options.maxAge > 0 ? Math.min(options.maxAge, SOCKET_LIFETIME) : SOCKET_LIFETIME;
    this.#draw = () => options.random.unpredictable();
  }

  /** Queries in flight. */
  get pending(): number {
    return this.#pending.size;
  }

  /** Open sockets. */
  get openSockets(): number {
    return this.#channels.size;
  }

  send(request: UpstreamRequest, readTimeout: number): void {
    if (this.#closed || this.#pending.isFull || request.length > LONGEST_DATAGRAM) {
      this.#refuse(request);
      return;
    }
    const lot = this.#draw();
    const turn = this.#options.clock.turnTime();
    if (turn !== this.#turn) {
      this.#turn = turn;
      // The clock advances within a turn of the event loop: with each received batch.
      if (this.#current[this.#place]?.port.gathers !== true) this.#place = (lot >>> 16) & (SOCKET_COUNT - 1);
    }
    const channel = this.#channelFor(this.#place, request.isProbe);
    const id = this.#pending.claim(request, lot, this.#draw, turn);
    request.id = id;
    request.readTimeout = readTimeout;
    request.carrier = channel;
    this.#options.wheel.scheduleItself(readTimeout, request);
    channel.inFlight++;
    channel.queriesLeft--;
    channel.used = true;
    channel.port.send(request.bytes, request.length, id);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#sweep?.cancel();
    this.#failLater?.cancel();
    this.#failing = [];
    this.#current.fill(undefined);
    for (const channel of [...this.#channels]) this.#drop(channel);
    const requests = this.#pending.select(() => true);
    for (const request of requests) this.#release(request, request.carrier);
    for (const request of requests) request.failed(this.#error("closed", "the upstream is no longer in use"));
  }

  #received(channel: UdpChannel, bytes: Uint8Array, length: number): void {
    if (length < SHORTEST_MESSAGE) {
      this.#options.metrics.short.increment();
      return;
    }
    const request = this.#pending.get(readU16(bytes, 0));
    if (request === undefined || request.carrier !== channel) {
      this.#options.metrics.unknownId.increment();
      return;
    }
    if (!isReply(request, bytes, length, this.#options.metrics)) return;
    this.#release(request, channel);
    request.answeredInPassing(bytes, length);
  }

  #timedOut(channel: UdpChannel, request: UpstreamRequest): void {
    // Shared by all queries of the socket, since queries that go to another upstream keep it while they wait.
    channel.timeout ??= this.#error("timeout", `read ${this.#way(channel)}: i/o timeout`);
    this.#release(request, channel);
    request.failed(channel.timeout);
  }

  #failed(channel: UdpChannel, cause: Error, usable: boolean): void {
    // Shared by all queries of the socket, like the timeout error.
    const error = this.#error("broken", this.#describe(channel, cause), cause);
    if (!usable) this.#drop(channel);
    if (channel.failure !== undefined) {
      channel.nextError = error;
      return;
    }
    channel.failure = this.#failureOf(channel, error);
    this.#failing.push(channel);
    if (this.#failLater === undefined) this.#failSome();
  }

  /** A query may be answered or abandoned, and its object reused, before the failure is reported, so it is identified by its id. */
  #failureOf(channel: UdpChannel, error: ExchangeError): ChannelFailure {
    const ids = this.#pending.select((request) => request.carrier === channel).map(({ id }) => id);
    return { error, ids, told: 0 };
  }

  /** Thousands of queries may wait for a dead upstream: other work gets its turn in between. */
  readonly #failSome = (): void => {
    this.#failLater = undefined;
    try {
      this.#failUntilOver();
    } finally {
      if (this.#failing.length > 0 && !this.#closed)
        this.#failLater ??= this.#options.clock.after(0, this.#failSome);
    }
  };

  #failUntilOver(): void {
    const { clock } = this.#options;
    const began = clock.now();
    let told = 0;
    for (let channel = this.#failing[0]; channel !== undefined; channel = this.#failing[0]) {
      for (let { failure } = channel; failure !== undefined; failure = channel.failure) {
        const id = failure.ids[failure.told++];
        if (id === undefined) {
          const { nextError } = channel;
          channel.nextError = undefined;
          channel.failure = nextError && this.#failureOf(channel, nextError);
          continue;
        }
        const request = this.#pending.get(id);
        if (request?.carrier !== channel) continue;
        this.#release(request, channel);
        request.failed(failure.error);
        if (++told % FAILURES_A_LOOK === 0 && clock.now() - began >= FAILING_SHARE) return;
      }
      this.#failing.shift();
    }
  }

  #channelFor(place: number, isProbe: boolean): UdpChannel {
    const channel = this.#current[place];
    if (channel !== undefined && (channel.queriesLeft > 0 || this.#channels.size >= MAX_OPEN_SOCKETS)) {
      if (!isProbe) this.#options.metrics.hits.increment();
      return channel;
    }
    if (channel !== undefined) this.#retire(channel);
    if (!isProbe) this.#options.metrics.misses.increment();
    const opened = new UdpChannel(this.#owner, place, this.#options.clock.turnTime());
    opened.queriesLeft = QUERIES_PER_SOCKET + (this.#draw() % QUERIES_PER_SOCKET);
    opened.port = this.#openPort(
      { remote: this.#options.remote, sourceAddress: this.#options.sourceAddress },
      opened,
    );
    this.#current[place] = opened;
    this.#channels.add(opened);
    this.#sweep ??= this.#options.clock.every(SWEEP_INTERVAL, () => this.#sweepChannels());
    return opened;
  }

  /** Takes a socket out of use; it stays open for the answers in flight. */
  #retire(channel: UdpChannel): void {
    if (this.#current[channel.place] === channel) this.#current[channel.place] = undefined;
    channel.retired = true;
    if (channel.inFlight === 0) this.#drop(channel);
  }

  #drop(channel: UdpChannel): void {
    if (this.#current[channel.place] === channel) this.#current[channel.place] = undefined;
    channel.retired = true;
    if (this.#channels.delete(channel)) channel.port.close();
  }

  #sweepChannels(): void {
    const now = this.#options.clock.now();
    for (const channel of this.#channels) {
      if (channel.used) {
        channel.used = false;
        channel.idleSince = now;
      }
      const idle = channel.inFlight === 0 && now - channel.idleSince >= this.#options.expire;
      if (!channel.retired && (idle || now - channel.openedAt >= this.#lifetime)) this.#retire(channel);
    }
    if (this.#channels.size > 0) return;
    this.#sweep?.cancel();
    this.#sweep = undefined;
  }

  #release(request: UpstreamRequest, channel: RequestCarrier | undefined): void {
    this.#pending.release(request.id, this.#options.clock.turnTime() + request.readTimeout);
    this.#options.wheel.cancel(request);
    request.carrier = undefined;
    if (!(channel instanceof UdpChannel)) return;
    channel.inFlight--;
    if (channel.retired && channel.inFlight === 0) this.#drop(channel);
  }

  #refuse(request: UpstreamRequest): void {
    const { text } = this.#options.remote;
    const error = this.#closed
      ? this.#error("closed", `${text} is no longer in use`)
      : this.#pending.isFull
        ? this.#error("busy", `${this.#pending.size} queries wait for ${text} over udp already`)
        : this.#error("broken", `write udp ${text}: message too long`);
    queueMicrotask(() => request.failed(error));
  }

  /** In Go's words, which name the system call twice. */
  #describe(channel: UdpChannel, cause: Error): string {
    const reason = describeSystemError(cause);
    const call = "syscall" in cause ? cause.syscall : undefined;
    if (call === "socket" || call === "bind" || call === "connect")
      return `dial udp ${this.#options.remote.text}: ${call}: ${reason}`;
    return `read ${this.#way(channel)}: read: ${reason}`;
  }

  #way(channel: UdpChannel): string {
    return `udp ${channel.port.localText()}->${this.#options.remote.text}`;
  }

  #error(fault: ExchangeError["fault"], message: string, cause?: Error): ExchangeError {
    return new ExchangeError(fault, this.protocol, this.#options.remote.text, message, { cause });
  }
}

/** The failure of a socket, for its queries. */
interface ChannelFailure {
  readonly error: ExchangeError;
  /** The queries that were in flight at the failure. */
  readonly ids: readonly number[];
  /** The number of them that have been handled. */
  told: number;
}

interface ChannelOwner {
  received(channel: UdpChannel, bytes: Uint8Array, length: number): void;
  failed(channel: UdpChannel, error: Error, usable: boolean): void;
  timedOut(channel: UdpChannel, request: UpstreamRequest): void;
  letGo(channel: UdpChannel, request: UpstreamRequest): void;
}

/** A socket with the exchange's state about it. */
class UdpChannel implements DatagramListener, RequestCarrier {
  readonly #owner: ChannelOwner;
  readonly place: number;
  readonly openedAt: number;
  port: DatagramPort = NO_PORT;
  /** The timeout error of this socket, made at the first timeout and shared by later ones. */
  timeout: ExchangeError | undefined;
  failure: ChannelFailure | undefined;
  /** A second failure that arrived before every query was notified of the first. */
  nextError: ExchangeError | undefined;
  inFlight = 0;
  /** Queries that may still be sent from this socket. */
  queriesLeft = 0;
  /** Since the last sweep. */
  used = true;
  idleSince: number;
  retired = false;

  constructor(owner: ChannelOwner, place: number, now: number) {
    this.#owner = owner;
    this.place = place;
    this.openedAt = now;
    this.idleSince = now;
  }

  received(bytes: Uint8Array, length: number): void {
    this.#owner.received(this, bytes, length);
  }

  failed(error: Error, usable: boolean): void {
    this.#owner.failed(this, error, usable);
  }

  timedOut(request: UpstreamRequest): void {
    this.#owner.timedOut(this, request);
  }

  letGo(request: UpstreamRequest): void {
    this.#owner.letGo(this, request);
  }
}

const NO_PORT: DatagramPort = {
  send: () => undefined,
  localText: () => "",
  close: () => undefined,
};
