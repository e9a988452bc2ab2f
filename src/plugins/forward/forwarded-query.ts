/** The way of one query through the upstreams, until one of them answers or there is no point in asking on. */

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

/** What is the same for all queries of one `forward`. */
export interface ForwardRules {
  /** At least one. */
  readonly upstreams: readonly Upstream[];
  readonly policy: Policy;
  /** Chooses among upstreams that are all down. */
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
  /** Rcodes with which a query goes on to the `forward` behind this one; empty where there is none. */
  readonly nextRcodes: ReadonlySet<number>;
  readonly nextOnNodata: boolean;
  readonly clock: Clock;
  readonly wheel: TimeoutWheel;
  readonly log: Logger;
  /** All upstreams were found down. */
  countBroken(): void;
  /** Who wants copies of what is exchanged; usually nobody. */
  readonly taps: readonly QueryTap[];
  /** Replies that came as datagrams, on their way out. */
  readonly frames: FramePool;
  /** The query has its outcome. */
  finished(): void;
  /** Those that are done with theirs: see {@link ForwardedQuery.take}. */
  readonly spare: ForwardedQuery[];
}

/** Milliseconds in which a query may begin another attempt. */
export const TOTAL_TIME = 5_000;
/** Milliseconds of rest after each round through the upstreams, from the third on: attempts that fail at once must not spin. */
export const PAUSE = 100;

/** Milliseconds: less would not do for servers far away, however short the time-out of an answer. */
const LEAST_CONNECT_TIME = 1_000;

/** Objects that wait for a query. They are as many as are under way at most times; a flood makes some of its own. */
const MOST_SPARE = 256;

export class ForwardedQuery extends UpstreamRequest implements Waiter {
  readonly #rules: ForwardRules;
  #next: Next = NOWHERE;
  /** What those in front wait for. */
  #late: LateOutcome | undefined;
  #deadline = 0;
  #upstream: Upstream | undefined;
  #overStream = false;
  /** Microseconds, modulo 2^30: one more number with a fraction would be one more object. */
  #sentAt = 0;
  #first = 0;
  #position = 0;
  /** What has not gone well so far; seldom anything. */
  #troubles: Troubles | undefined;

  private constructor(rules: ForwardRules) {
    super();
    this.#rules = rules;
  }

  /** Sends a query; there is no promise where nobody can be asked. */
  static begin(rules: ForwardRules, query: Query, next: Next): Outcome | Promise<Outcome> {
    const forwarded = rules.spare.pop() ?? new ForwardedQuery(rules);
    forwarded.#late = new LateOutcome(query);
    forwarded.#next = next;
    forwarded.#overStream = rules.forceTcp || (query.overStream && !rules.preferUdp);
    forwarded.#first = rules.policy.first(rules.upstreams.length);
    forwarded.#position = 0;
    return forwarded.#begin(forwarded.#late);
  }

  /** No private accessor: each use of one is a call into the engine. */
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
    // Whole milliseconds are no object of their own.
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
    this.query.trace?.note("passes over a reply to another question");
  }

  failed(error: ExchangeError): void {
    if (this.#rules.taps.length > 0) this.#tap(undefined, error);
    // An exchange that has no room says so later than it was asked.
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
    // A connection in the making is not waited for longer than an answer would be: there may be others to ask.
    const connectTimeout = Math.min(Math.max(readTimeout, LEAST_CONNECT_TIME), this.#deadline - now);
    exchange.send(this, Math.min(readTimeout, this.query.deadline - now), connectTimeout);
  }

  /** Which upstream, and how the others fare. */
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
    const why = this.#troubles?.lastResort === true ? ", by lot, as all are down" : "";
    trace.note(`asks ${address} over ${protocol}${why}`, { upstream: address, protocol });
  }

  /** The next upstream that is not down; any one when all are, unless nobody is to be asked then. */
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

  /** @returns whether that is the answer: then it is settled */
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
      this.query.trace?.note("the next forward is asked");
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

  /** Asks the next upstream, if there is time and patience left. */
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

  /** For the pause between two rounds. */
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

  /** Milliseconds since it was sent. An attempt takes less than a quarter of an hour. */
  #elapsed(now: number): number {
    return ((microseconds(now) - this.#sentAt) & MICROSECONDS) / 1000;
  }

  #trouble(): Troubles {
    this.#troubles ??= new Troubles();
    return this.#troubles;
  }

  #settle(outcome: Outcome | Promise<Outcome>): void {
    this.#rules.finished();
    // It may wait for the next `forward` by now.
    const { root } = this.query;
    if (root.waiter === this) root.waiter = undefined;
    this.#late?.settleWith(outcome);
  }

  /**
   * Waits for another query, as most do: nobody knows of it any more, since its exchange has let go of it before the answer, and the client's query
   * when that was settled. Of one that met trouble this is not so plain, and it is left alone.
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

/** An exchange that failed so has sent its query. */
const SENT: ReadonlySet<ExchangeFault> = new Set(["timeout", "broken", "malformed"]);

const MICROSECONDS = 0x3fff_ffff;

/** The operator takes the last 32 bits of what may be more: a remainder would be a call. */
function microseconds(milliseconds: number): number {
  return (milliseconds * 1000) & MICROSECONDS;
}

/** What a query meets on its way when an upstream does not do. Most that wait have met nothing yet. */
class Troubles {
  /** The other upstreams in their order. */
  others: readonly number[] | undefined;
  downInARow = 0;
  /** All upstreams are down, and this one was drawn by lot. */
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
    // Its time-out still comes, and finds nothing to do.
    request.carrier = undefined;
  },
};

function isNodata(reply: Reply): boolean {
  return reply.rcode === Rcode.NOERROR && !reply.truncated && reply.sections.answerCount === 0;
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
