/** Sends one query to the upstreams in turn, until one of them answers or no further attempt makes sense. */

import { Rcode } from "../../dns/index.ts";
import type { TimeoutWheel } from "../../lib/time/timeout-wheel.ts";
import type { Next, Outcome, Query, Reply } from "../../plugin/index.ts";
import type { FramePool } from "../../plugin/packed/frames.ts";
import type { Trace } from "../../plugin/query/trace.ts";
import type { ForwardedExchange, QueryTap } from "../../plugin/services/query-tap.ts";
import type { Policy } from "../../upstream/config/policy.ts";
import type { PooledBuffer, RequestCarrier } from "../../upstream/exchange/exchange.ts";
import type { ExchangeError, ExchangeFault } from "../../upstream/exchange/exchange-error.ts";
import { lentReply } from "../../upstream/exchange/forwarded-reply.ts";
import type { Upstream } from "../../upstream/upstream.ts";
import { PAUSING, READY, UpstreamQuery, type UpstreamQueryRules } from "../../upstream/upstream-query.ts";

/** State that all queries of one `forward` share. */
export interface ForwardRules extends UpstreamQueryRules {
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
  readonly wheel: TimeoutWheel;
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

/**
 * Milliseconds of pause after each round through the upstreams, from the third round on: attempts that fail at once
 * must not spin.
 */
export const PAUSE = 100;

/** Milliseconds: less would not reach distant servers, however short the time-out for an answer. */
const LEAST_CONNECT_TIME = 1_000;

/** Bound for the objects in the pool. It covers usual load; a flood creates further objects. */
const MOST_SPARE = 256;

export class ForwardedQuery extends UpstreamQuery<ForwardRules> {
  #next: Next = NOWHERE;
  #first = 0;
  #position = 0;
  /** The failures so far; usually none. */
  #troubles: Troubles | undefined;

  /** Sends a query; makes no promise if there is no upstream to use. */
  static begin(rules: ForwardRules, query: Query, next: Next): Outcome | Promise<Outcome> {
    const forwarded = rules.spare.pop() ?? new ForwardedQuery(rules);
    forwarded.#next = next;
    forwarded.overStream = rules.forceTcp || (query.overStream && !rules.preferUdp);
    forwarded.#first = rules.policy.first(rules.upstreams.length);
    forwarded.#position = 0;
    return forwarded.start(query);
  }

  override answered(octets: Uint8Array, lent?: PooledBuffer): void {
    if (this.rules.taps.length > 0) this.#tap(octets, undefined);
    super.answered(octets, lent);
  }

  override answeredInPassing(buffer: Uint8Array, length: number): void {
    const { frames, taps } = this.rules;
    const isPadded = this.isPadded(this.upstream);
    const reply = taps.length > 0 ? undefined : lentReply(buffer, length, this.query, isPadded, frames);
    if (reply === undefined) {
      super.answeredInPassing(buffer, length);
      return;
    }
    try {
      if (this.observe(reply)) this.#rest();
    } catch (error) {
      this.faulted(error);
    }
  }

  override failed(error: ExchangeError): void {
    if (this.rules.taps.length > 0) this.#tap(undefined, error);
    if (error.fault === "unsupported") this.settle(this.query.fail(Rcode.NOTIMP, error));
    else super.failed(error);
  }

  #tap(reply: Uint8Array | undefined, failure: ExchangeError | undefined): void {
    const { upstream } = this;
    if (upstream === undefined) return;
    let exchange: ForwardedExchange | undefined;
    for (const tap of this.rules.taps) {
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
    const endedAt = this.rules.clock.turnTime();
    return {
      query: this.query,
      upstream: upstream.address.host,
      port: upstream.address.port,
      protocol: this.protocol,
      sentAt: endedAt - this.elapsed(endedAt),
      endedAt,
      reply,
      failure,
      wasSent: failure === undefined || SENT.has(failure.fault),
    };
  }

  protected override isPadded(upstream: Upstream | undefined): boolean {
    return upstream?.hasOneTransport === true;
  }

  protected override send(upstream: Upstream, now: number): void {
    const { readTimeout } = this.rules;
    if (this.query.trace !== undefined) this.#noteAsking(upstream, this.query.trace);
    this.query.setMetadata("forward/upstream", upstream.address.text);
    // A connection attempt may take no longer than an answer: another upstream may be reachable.
    const connectTimeout = Math.min(Math.max(readTimeout, LEAST_CONNECT_TIME), this.lastStart - now);
    const exchange = this.overStream ? upstream.stream : upstream.datagram;
    exchange.send(this, Math.min(readTimeout, this.query.deadline - now), connectTimeout);
  }

  /** Notes the chosen upstream, and at the first attempt those that are down. */
  #noteAsking(upstream: Upstream, trace: Trace): void {
    const { upstreams, maxFails } = this.rules;
    const address = upstream.address.text;
    const down = upstreams.filter((each) => each.healthOver(this.overStream).isDown(maxFails));
    if (this.attempts === 1 && down.length > 0) {
      const fails = (each: Upstream): number => each.healthOver(this.overStream).fails;
      const names = down.map((each) => `${each.address.text} (${fails(each)} failed probes)`);
      trace.note(`${down.length} of ${upstreams.length} upstreams down: ${names.join(", ")}`, {
        down: down.map((each) => ({ upstream: each.address.text, failedProbes: fails(each) })),
      });
    }
    const { protocol } = this;
    const server = `${address} over ${protocol}`;
    const isLastResort = this.#troubles?.lastResort === true;
    const text = isLastResort ? `all upstreams are down: tries ${server} at random` : `asks ${server}`;
    trace.note(text, { upstream: address, protocol });
  }

  /** The next upstream that is not down. If all are down, a random one or, by configuration, none. */
  protected override choose(): Upstream | undefined {
    const { upstreams, maxFails, failfast, lot } = this.rules;
    for (;;) {
      if (this.#position >= upstreams.length) {
        this.#position = 0;
        if (this.#troubles !== undefined) this.#troubles.downInARow = 0;
      }
      const upstream = upstreams[this.#indexAt(this.#position++)];
      if (upstream === undefined || !upstream.healthOver(this.overStream).isDown(maxFails)) return upstream;
      const troubles = this.#trouble();
      if (++troubles.downInARow < upstreams.length) continue;
      this.rules.countBroken();
      if (failfast) return undefined;
      troubles.lastResort = true;
      return upstreams[lot.first(upstreams.length)];
    }
  }

  #indexAt(position: number): number {
    if (position === 0) return this.#first;
    const troubles = this.#trouble();
    troubles.others ??= this.rules.policy.others(this.#first, this.rules.upstreams.length);
    return troubles.others[position - 1] ?? 0;
  }

  protected override accept(reply: Reply): boolean {
    const { rcode } = reply;
    const { failover, nextRcodes, nextOnNodata, preferUdp, upstreams } = this.rules;
    const { upstream } = this;
    if (preferUdp && reply.truncated && !this.overStream && upstream?.hasOneTransport === false) {
      this.overStream = true;
      this.ask(upstream, this.rules.clock.turnTime());
      return false;
    }
    if (failover.has(rcode) && ++this.#trouble().failoverReplies < upstreams.length) {
      this.#trouble().failoverReply = reply;
      this.#proceed();
      return false;
    }
    if (nextRcodes.has(rcode) || (nextOnNodata && isNodata(reply))) {
      this.query.trace?.note("passes the query to the next forward");
      this.settle(this.#next(this.query));
      return false;
    }
    this.settle(reply);
    return true;
  }

  protected override proceedAfter(error: Error): void {
    const troubles = this.#trouble();
    troubles.lastError = error;
    if (this.rules.maxFails !== 0) this.upstream?.healthOver(this.overStream).check();
    troubles.failedAttempts++;
    if (troubles.lastResort) this.settle(this.giveUp());
    else this.#proceed();
  }

  /** Tries the next upstream, if time and attempts remain. */
  #proceed(): void {
    const { maxConnectAttempts, upstreams, wheel } = this.rules;
    const attempts = this.#troubles?.failedAttempts ?? 0;
    if (maxConnectAttempts > 0 && attempts >= maxConnectAttempts) {
      this.settle(this.giveUp());
    } else if (attempts >= 2 * upstreams.length && attempts % upstreams.length === 0) {
      this.state = PAUSING;
      this.carrier = PAUSE_CARRIER;
      wheel.scheduleItself(PAUSE, this);
    } else {
      this.askNext();
    }
  }

  protected override giveUp(): Outcome {
    const { failoverReply, lastError } = this.#troubles ?? NO_TROUBLES;
    return failoverReply ?? this.query.fail(Rcode.SERVFAIL, lastError ?? new NoHealthyUpstreamError());
  }

  #trouble(): Troubles {
    this.#troubles ??= new Troubles();
    return this.#troubles;
  }

  protected override ended(): void {
    super.ended();
    this.rules.finished();
  }

  protected override replied(upstream: Upstream, rcode: number, milliseconds: number): void {
    upstream.durations.observe(rcode, milliseconds);
  }

  /**
   * Returns this object to the pool. Safe because nothing refers to it any more: the exchange dropped it before
   * answering, and the client's query dropped it when settled. After a failure that cannot be guaranteed, so the
   * object is not reused.
   */
  #rest(): void {
    const { spare } = this.rules;
    if (this.#troubles !== undefined || spare.length >= MOST_SPARE) return;
    this.state = READY;
    this.late = undefined;
    this.#next = NOWHERE;
    spare.push(this);
  }
}

/** After these faults the query has been sent. */
const SENT: ReadonlySet<ExchangeFault> = new Set(["timeout", "broken", "malformed"]);

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

const PAUSE_CARRIER: RequestCarrier = {
  timedOut(request) {
    request.carrier = undefined;
    if (request instanceof ForwardedQuery) request.askNext();
  },
  letGo(request) {
    // The pending time-out then finds nothing to do.
    request.carrier = undefined;
  },
};

function isNodata(reply: Reply): boolean {
  return reply.rcode === Rcode.NOERROR && !reply.truncated && reply.sections.answerCount === 0;
}
