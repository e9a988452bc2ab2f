/**
 * Asking an upstream over UDP. Few sockets carry many queries each, which costs a fraction of a socket for each query;
 * unpredictable ids and ports that change keep answers hard to forge (RFC 5452). The README of `forward` has the numbers.
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
/** A socket is replaced after between one and two times as many queries. */
export const QUERIES_PER_SOCKET = 1_024;
/** A socket is replaced after so many milliseconds, give or take the second between two looks at it. */
export const SOCKET_LIFETIME = 5_000;
/** Sockets open at a time, those included that only wait for their last answers. */
export const MAX_OPEN_SOCKETS = 128;
/** Queries in flight. */
export const MAX_PENDING_DATAGRAMS = 16_384;
/** What an IPv4 datagram can carry. */
const LONGEST_DATAGRAM = 65_507;
const SWEEP_INTERVAL = 1_000;
/** Milliseconds of a turn of the event loop in which queries are told that their socket has failed. */
const FAILING_SHARE = 0.5;
/** How many are told between two looks at the clock: each may ask elsewhere, or answer its client and be logged. */
const FAILURES_A_LOOK = 4;

export class UdpExchange implements Exchange {
  readonly protocol = "udp";
  readonly #options: UdpExchangeOptions;
  readonly #openPort: OpenDatagramPort;
  readonly #lifetime: number;
  readonly #pending = new IdTable<UpstreamRequest>(MAX_PENDING_DATAGRAMS);
  /** The sockets that new queries go to; the place is drawn by lot. */
  readonly #current: (UdpChannel | undefined)[] = Array.from({ length: SOCKET_COUNT });
  /**
   * Where the queries of one moment go: together, since a batch costs little more than one query. That a forger would have to hit one
   * of the sockets is the same either way; what spreads over them is the load of upstreams that take queries by port.
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
  /** Sockets with queries that are still to be told that it has failed. */
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

  /** Sockets that are open. */
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
      // Time goes on within a turn of the event loop: with each batch that was received.
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
    for (const request of requests)
      request.failed(this.#error("closed", "the upstream is not used any more"));
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
    // One for all queries of the socket: those that ask elsewhere then keep it while they wait.
    channel.timeout ??= this.#error("timeout", `read ${this.#way(channel)}: i/o timeout`);
    this.#release(request, channel);
    request.failed(channel.timeout);
  }

  #failed(channel: UdpChannel, cause: Error, usable: boolean): void {
    // One for all queries of the socket, as for those that time out.
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

  /** A query may be answered, or given up and its object used for another one, before it is told: so it is known by its id. */
  #failureOf(channel: UdpChannel, error: ExchangeError): ChannelFailure {
    const ids = this.#pending.select((request) => request.carrier === channel).map(({ id }) => id);
    return { error, ids, told: 0 };
  }

  /** Thousands may wait for an upstream that has died: others have their turn in between. */
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

  /** Takes a socket out of use; it stays open for the answers on their way. */
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
      ? this.#error("closed", `${text} is not used any more`)
      : this.#pending.isFull
        ? this.#error("busy", `${this.#pending.size} queries wait for ${text} over udp already`)
        : this.#error("broken", `write udp ${text}: message too long`);
    queueMicrotask(() => request.failed(error));
  }

  /** In the words of Go, which name the system call twice. */
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

/** Of the queries of a socket. */
interface ChannelFailure {
  readonly error: ExchangeError;
  /** Of those that waited when it failed. */
  readonly ids: readonly number[];
  /** How many of them have been looked at. */
  told: number;
}

interface ChannelOwner {
  received(channel: UdpChannel, bytes: Uint8Array, length: number): void;
  failed(channel: UdpChannel, error: Error, usable: boolean): void;
  timedOut(channel: UdpChannel, request: UpstreamRequest): void;
  letGo(channel: UdpChannel, request: UpstreamRequest): void;
}

/** A socket with what the exchange knows of it. */
class UdpChannel implements DatagramListener, RequestCarrier {
  readonly #owner: ChannelOwner;
  readonly place: number;
  readonly openedAt: number;
  port: DatagramPort = NO_PORT;
  /** That a query had no answer in time, once one has had none. */
  timeout: ExchangeError | undefined;
  failure: ChannelFailure | undefined;
  /** It has failed again while not all knew of the first time. */
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
