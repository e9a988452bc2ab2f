/** Sends one query to the upstreams in turn, until one of them answers or no further attempt makes sense. */

import { Rcode, rcodeName, WireError } from "../../dns/index.ts";
import type { TimeoutWheel } from "../../lib/time/timeout-wheel.ts";
import { LateOutcome } from "../../plugin/chain/late-outcome.ts";
import {
  type Clock,
  DROPPED,
  type Logger,
  type Next,
  type Outcome,
  type Query,
  type Reply,
} from "../../plugin/index.ts";
import type { FramePool } from "../../plugin/packed/frames.ts";
import type { Waiter } from "../../plugin/query/query.ts";
import type { Trace } from "../../plugin/query/trace.ts";
import type { ForwardedExchange, QueryTap } from "../../plugin/services/query-tap.ts";
import type { Policy } from "../../upstream/config/policy.ts";
import { type PooledBuffer, type RequestCarrier, UpstreamRequest } from "../../upstream/exchange/exchange.ts";
import { ExchangeError, type ExchangeFault } from "../../upstream/exchange/exchange-error.ts";
import { lentReply, replyFrom } from "../../upstream/exchange/forwarded-reply.ts";
import { hexdump } from "../../upstream/exchange/hexdump.ts";
import type { Upstream } from "../../upstream/upstream.ts";

/** State that all queries of one `forward` share. */
export interface ForwardRules {
  /** At least one upstream. */
  readonly upstreams: readonly Upstream[];
  readonly policy: Policy;
  /** Chooses among upstreams when all are down. */
  readonly lot: Policy;
  readonly forceTcp: boolean;
  readonly preferUdp: boolean;
  /** Milliseconds. */
  readonly readTimeout: number;
  readonly maxFails: number;
  /** 0 for no limit. */
  readonly maxConnectAttempts: number;
  readonly failfast: boolean;
  readonly failover: ReadonlySet<number>;
  /** Rcodes after which a query continues with the next `forward`; empty without a next one. */
  readonly nextRcodes: ReadonlySet<number>;
  readonly nextOnNodata: boolean;
  readonly clock: Clock;
  readonly wheel: TimeoutWheel;
  readonly log: Logger;
  /** Counts a query that found all upstreams down. */
  countBroken(): void;
  /** Receivers of copies of all messages; usually empty. */
  readonly taps: readonly QueryTap[];
  /** Buffers for replies that arrived as datagrams. */
  readonly frames: FramePool;
  /** Called when the query has its outcome. */
  finished(): void;
  /** Objects for reuse: see {@link ForwardedQuery.take}. */
  readonly spare: ForwardedQuery[];
}

/** Milliseconds after which a query starts no further attempt. */
export const TOTAL_TIME = 5_000;
/**
 * Milliseconds of pause after each round through the upstreams, from the third round on: attempts that fail at once
 * must not spin.
 */
export const PAUSE = 100;

/** Milliseconds: less would not reach distant servers, however short the time-out for an answer. */
const LEAST_CONNECT_TIME = 1_000;

/** Bound for the objects in the pool. It covers usual load; a flood creates further objects. */
const MOST_SPARE = 256;

export class ForwardedQuery extends UpstreamRequest implements Waiter {
  readonly #rules: ForwardRules;
  #next: Next = NOWHERE;
  /** The outcome that the caller waits for. */
  #late: LateOutcome | undefined;
  #deadline = 0;
  #upstream: Upstream | undefined;
  #overStream = false;
  /** Microseconds, modulo 2^30: a number with a fraction would be one more object. */
  #sentAt = 0;
  #first = 0;
  #position = 0;
  /** The failures so far; usually none. */
  #troubles: Troubles | undefined;

  private constructor(rules: ForwardRules) {
    super();
    this.#rules = rules;
  }

  /** Sends a query; makes no promise if there is no upstream to use. */
  static begin(rules: ForwardRules, query: Query, next: Next): Outcome | Promise<Outcome> {
    const forwarded = rules.spare.pop() ?? new ForwardedQuery(rules);
    forwarded.#late = new LateOutcome(query);
    forwarded.#next = next;
    forwarded.#overStream = rules.forceTcp || (query.overStream && !rules.preferUdp);
    forwarded.#first = rules.policy.first(rules.upstreams.length);
    forwarded.#position = 0;
    return forwarded.#begin(forwarded.#late);
  }

  /** Not a private accessor: each use of one is a call into the engine. */
  get query(): Query {
    return (this.#late as LateOutcome).query;
  }

  get bytes(): Uint8Array {
    return this.query.bytes;
  }

  get length(): number {
    return this.query.length;
  }

  get questionEnd(): number {
    return this.query.questionEnd;
  }

  #begin(late: LateOutcome): Outcome | Promise<Outcome> {
    const { root } = this.query;
    if (root.isAbandoned) {
      this.#rules.finished();
      return DROPPED;
    }
    const now = this.#rules.clock.turnTime();
    // Whole milliseconds need no heap object.
    this.#deadline = Math.ceil(Math.min(now + TOTAL_TIME, this.query.deadline));
    const upstream = now < this.#deadline ? this.#choose() : undefined;
    if (upstream === undefined) {
      this.#rules.finished();
      return this.#giveUp();
    }
    root.waiter = this;
    this.#ask(upstream, now);
    this.query.shrink();
    return late;
  }

  answered(octets: Uint8Array, lent?: PooledBuffer): void {
    if (this.#rules.taps.length > 0) this.#tap(octets, undefined);
    try {
      this.#read(octets, lent);
    } catch (error) {
      this.#faulted(error);
    }
  }

  override answeredInPassing(buffer: Uint8Array, length: number): void {
    const { frames, taps } = this.#rules;
    const isPadded = this.#upstream?.hasOneTransport === true;
    const reply = taps.length > 0 ? undefined : lentReply(buffer, length, this.query, isPadded, frames);
    if (reply === undefined) {
      super.answeredInPassing(buffer, length);
      return;
    }
    try {
      if (this.#accept(reply)) this.#rest();
    } catch (error) {
      this.#faulted(error);
    }
  }

  #faulted(error: unknown): void {
    if (error instanceof WireError) this.#failed(this.#malformed(error));
    else this.#settle(this.query.fail(Rcode.SERVFAIL, asError(error)));
  }

  override mismatched(message: Uint8Array, length: number): void {
    const { log } = this.#rules;
    if (log.debugEnabled) {
      const { name, type } = this.query;
      log.debug(`Wrong reply from ${this.#upstream?.address.text} for id: ${this.id}, ${name} ${type}`);
      for (const line of hexdump(message.subarray(0, length))) log.debug(`debug: ${line}`);
    }
    this.query.trace?.note("ignores a reply to another question");
  }

  failed(error: ExchangeError): void {
    if (this.#rules.taps.length > 0) this.#tap(undefined, error);
    // An exchange without room reports it in a later turn, when the query may be abandoned.
    if (this.query.root.isAbandoned) return;
    if (error.fault === "unsupported") this.#settle(this.query.fail(Rcode.NOTIMP, error));
    else this.#failed(error);
  }

  abandon(): void {
    this.carrier?.letGo(this);
    this.#settle(DROPPED);
  }

  #tap(reply: Uint8Array | undefined, failure: ExchangeError | undefined): void {
    const upstream = this.#upstream;
    if (upstream === undefined) return;
    let exchange: ForwardedExchange | undefined;
    for (const tap of this.#rules.taps) {
      if (tap.wants?.(this.query) === false) continue;
      exchange ??= this.#exchange(upstream, reply, failure);
      tap.forwarded(exchange);
    }
  }

  #exchange(
    upstream: Upstream,
    reply: Uint8Array | undefined,
    failure: ExchangeError | undefined,
  ): ForwardedExchange {
    const endedAt = this.#rules.clock.turnTime();
    return {
      query: this.query,
      upstream: upstream.address.host,
      port: upstream.address.port,
      protocol: (this.#overStream ? upstream.stream : upstream.datagram).protocol,
      sentAt: endedAt - this.#elapsed(endedAt),
      endedAt,
      reply,
      failure,
      wasSent: failure === undefined || SENT.has(failure.fault),
    };
  }

  #ask(upstream: Upstream, now: number): void {
    const { readTimeout } = this.#rules;
    if (this.query.trace !== undefined) this.#noteAsking(upstream, this.query.trace);
    const exchange = this.#overStream ? upstream.stream : upstream.datagram;
    this.#upstream = upstream;
    this.#sentAt = microseconds(now);
    this.query.setMetadata("forward/upstream", upstream.address.text);
    // A connection attempt may take no longer than an answer: another upstream may be reachable.
    const connectTimeout = Math.min(Math.max(readTimeout, LEAST_CONNECT_TIME), this.#deadline - now);
    exchange.send(this, Math.min(readTimeout, this.query.deadline - now), connectTimeout);
  }

  /** Notes the chosen upstream and those that are down. */
  #noteAsking(upstream: Upstream, trace: Trace): void {
    const { upstreams, maxFails } = this.#rules;
    const address = upstream.address.text;
    const down = upstreams.filter((each) => each.healthOver(this.#overStream).isDown(maxFails));
    const protocol = (this.#overStream ? upstream.stream : upstream.datagram).protocol;
    if (this.#upstream === undefined && down.length > 0) {
      const fails = (each: Upstream): number => each.healthOver(this.#overStream).fails;
      const names = down.map((each) => `${each.address.text} (${fails(each)} failed probes)`);
      trace.note(`${down.length} of ${upstreams.length} upstreams down: ${names.join(", ")}`, {
        down: down.map((each) => ({ upstream: each.address.text, failedProbes: fails(each) })),
      });
    }
    const server = `${address} over ${protocol}`;
    const isLastResort = this.#troubles?.lastResort === true;
    const text = isLastResort ? `all upstreams are down: tries ${server} at random` : `asks ${server}`;
    trace.note(text, { upstream: address, protocol });
  }

  /** The next upstream that is not down. If all are down, a random one or, by configuration, none. */
  #choose(): Upstream | undefined {
    const { upstreams, maxFails, failfast, lot } = this.#rules;
    for (;;) {
      if (this.#position >= upstreams.length) {
        this.#position = 0;
        if (this.#troubles !== undefined) this.#troubles.downInARow = 0;
      }
      const upstream = upstreams[this.#indexAt(this.#position++)];
      if (upstream === undefined || !upstream.healthOver(this.#overStream).isDown(maxFails)) return upstream;
      const troubles = this.#trouble();
      if (++troubles.downInARow < upstreams.length) continue;
      this.#rules.countBroken();
      if (failfast) return undefined;
      troubles.lastResort = true;
      return upstreams[lot.first(upstreams.length)];
    }
  }

  #indexAt(position: number): number {
    if (position === 0) return this.#first;
    const troubles = this.#trouble();
    troubles.others ??= this.#rules.policy.others(this.#first, this.#rules.upstreams.length);
    return troubles.others[position - 1] ?? 0;
  }

  #read(octets: Uint8Array, lent: PooledBuffer | undefined): void {
    const upstream = this.#upstream;
    const hasOneTransport = upstream?.hasOneTransport === true;
    const isDatagram = !this.#overStream && !hasOneTransport;
    this.#accept(replyFrom(octets, this.query, isDatagram, hasOneTransport, upstream?.irregular, lent));
  }

  /** @returns whether the reply is the answer, with which the query is settled */
  #accept(reply: Reply): boolean {
    const { rcode } = reply;
    const { failover, nextRcodes, nextOnNodata, preferUdp, upstreams } = this.#rules;
    this.#observe(rcode);
    const upstream = this.#upstream;
    if (preferUdp && reply.truncated && !this.#overStream && upstream?.hasOneTransport === false) {
      this.#overStream = true;
      this.#ask(upstream, this.#rules.clock.turnTime());
      return false;
    }
    if (failover.has(rcode) && ++this.#trouble().failoverReplies < upstreams.length) {
      this.#trouble().failoverReply = reply;
      this.#proceed();
      return false;
    }
    if (nextRcodes.has(rcode) || (nextOnNodata && isNodata(reply))) {
      this.query.trace?.note("passes the query to the next forward");
      this.#settle(this.#next(this.query));
      return false;
    }
    this.#settle(reply);
    return true;
  }

  #failed(error: Error): void {
    const troubles = this.#trouble();
    troubles.lastError = error;
    this.query.trace?.note(
      `${error.message}, after ${this.#elapsed(this.#rules.clock.turnTime()).toFixed(2)} ms`,
      { error: error.message },
    );
    if (this.#rules.maxFails !== 0) this.#upstream?.healthOver(this.#overStream).check();
    troubles.failedAttempts++;
    if (troubles.lastResort) this.#settle(this.#giveUp());
    else this.#proceed();
  }

  /** Tries the next upstream, if time and attempts remain. */
  #proceed(): void {
    const { maxConnectAttempts, upstreams, wheel } = this.#rules;
    const attempts = this.#troubles?.failedAttempts ?? 0;
    if (maxConnectAttempts > 0 && attempts >= maxConnectAttempts) {
      this.#settle(this.#giveUp());
    } else if (attempts >= 2 * upstreams.length && attempts % upstreams.length === 0) {
      this.carrier = PAUSING;
      wheel.scheduleItself(PAUSE, this);
    } else {
      this.proceedNow();
    }
  }

  /** Continues after the pause between two rounds. */
  proceedNow(): void {
    const now = this.#rules.clock.turnTime();
    const upstream = now < this.#deadline ? this.#choose() : undefined;
    if (upstream === undefined) this.#settle(this.#giveUp());
    else this.#ask(upstream, now);
  }

  #giveUp(): Outcome {
    const { failoverReply, lastError } = this.#troubles ?? NO_TROUBLES;
    return failoverReply ?? this.query.fail(Rcode.SERVFAIL, lastError ?? new NoHealthyUpstreamError());
  }

  /** Milliseconds since the attempt was sent. An attempt takes less than a quarter of an hour. */
  #elapsed(now: number): number {
    return ((microseconds(now) - this.#sentAt) & MICROSECONDS) / 1000;
  }

  #trouble(): Troubles {
    this.#troubles ??= new Troubles();
    return this.#troubles;
  }

  #settle(outcome: Outcome | Promise<Outcome>): void {
    this.#rules.finished();
    // The query may be with the next `forward` already.
    const { root } = this.query;
    if (root.waiter === this) root.waiter = undefined;
    this.#late?.settleWith(outcome);
  }

  /**
   * Returns this object to the pool. Safe because nothing refers to it any more: the exchange dropped it before
   * answering, and the client's query dropped it when settled. After a failure that cannot be guaranteed, so the
   * object is not reused.
   */
  #rest(): void {
    const { spare } = this.#rules;
    if (this.#troubles !== undefined || spare.length >= MOST_SPARE) return;
    this.#late = undefined;
    this.#next = NOWHERE;
    spare.push(this);
  }

  #observe(rcode: number): void {
    const upstream = this.#upstream;
    if (upstream === undefined) return;
    const milliseconds = this.#elapsed(this.#rules.clock.turnTime());
    upstream.durations.observe(rcode, milliseconds);
    const address = upstream.address.text;
    this.query.trace?.note(`${address} answers ${rcodeName(rcode)} after ${milliseconds.toFixed(2)} ms`, {
      upstream: address,
      rcode: rcodeName(rcode),
      milliseconds,
    });
  }

  #malformed(cause: WireError): ExchangeError {
    const to = this.#upstream?.address.text ?? "";
    const protocol = (this.#overStream ? this.#upstream?.stream : this.#upstream?.datagram)?.protocol ?? "";
    return new ExchangeError("malformed", protocol, to, `reply from ${to}: ${cause.message}`, { cause });
  }
}

/** After these faults the query has been sent. */
const SENT: ReadonlySet<ExchangeFault> = new Set(["timeout", "broken", "malformed"]);

const MICROSECONDS = 0x3fff_ffff;

/** The operator takes the low 32 bits; a remainder would be a function call. */
function microseconds(milliseconds: number): number {
  return (milliseconds * 1000) & MICROSECONDS;
}

/** State that a query needs only once an upstream has failed. */
class Troubles {
  /** The other upstreams in order. */
  others: readonly number[] | undefined;
  downInARow = 0;
  /** All upstreams are down, and this one was chosen at random. */
  lastResort = false;
  failedAttempts = 0;
  failoverReplies = 0;
  failoverReply: Reply | undefined;
  lastError: Error | undefined;
}

const NO_TROUBLES: Readonly<Troubles> = Object.freeze(new Troubles());

export class NoHealthyUpstreamError extends Error {
  override readonly name = "NoHealthyUpstreamError";

  constructor() {
    super("no healthy proxies");
  }
}

const NOWHERE: Next = (query) => query.fail();

const PAUSING: RequestCarrier = {
  timedOut(request) {
    request.carrier = undefined;
    if (request instanceof ForwardedQuery) request.proceedNow();
  },
  letGo(request) {
    // The pending time-out then finds nothing to do.
    request.carrier = undefined;
  },
};

function isNodata(reply: Reply): boolean {
  return reply.rcode === Rcode.NOERROR && !reply.truncated && reply.sections.answerCount === 0;
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
