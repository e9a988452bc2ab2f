/** One query of a client on its way through the upstreams, until one of them answers or no further attempt makes sense. */
import { Rcode, rcodeName, WireError } from "../dns/index.ts";
import type { Logger } from "../lib/logging/log.ts";
import type { Clock } from "../lib/time/clock.ts";
import { LateOutcome } from "../plugin/chain/late-outcome.ts";
import { DROPPED, type Outcome } from "../plugin/query/outcome.ts";
import type { Query, Waiter } from "../plugin/query/query.ts";
import type { Reply } from "../plugin/query/reply.ts";
import { type PooledBuffer, UpstreamRequest } from "./exchange/exchange.ts";
import { ExchangeError } from "./exchange/exchange-error.ts";
import { replyFrom } from "./exchange/forwarded-reply.ts";
import { hexdump } from "./exchange/hexdump.ts";
import type { Upstream } from "./upstream.ts";

/** State that all queries of one directive share. */
export interface UpstreamQueryRules {
  /** At least one upstream. */
  readonly upstreams: readonly Upstream[];
  readonly clock: Clock;
  readonly log: Logger;
}

/** Milliseconds after which a query starts no further attempt. */
export const TOTAL_TIME = 5_000;

/**
 * Where a query is. It moves from READY to ASKING, then between ASKING and PAUSING with each attempt, and ends as
 * SETTLED. What an exchange reports in any other state than ASKING comes too late. Numbers, as they need no look-up.
 */
export const READY = 0;
export const ASKING = 1;
export const PAUSING = 2;
export const SETTLED = 3;
type State = typeof READY | typeof ASKING | typeof PAUSING | typeof SETTLED;

/**
 * What the directives that ask upstreams have in common. A directive decides which upstream is next, what a reply or a failure
 * means, and what happens without an answer.
 *
 * Its members are not private (`#`), because private methods of a base class would add one more brand to each object.
 */
export abstract class UpstreamQuery<Rules extends UpstreamQueryRules>
  extends UpstreamRequest
  implements Waiter
{
  protected readonly rules: Rules;
  protected state: State = READY;
  /** The outcome that the caller waits for. */
  protected late: LateOutcome | undefined = undefined;
  /** Milliseconds on the clock after which no attempt starts. */
  protected lastStart = 0;
  protected attempts = 0;
  /** The upstream of the last attempt. */
  protected upstream: Upstream | undefined = undefined;
  protected overStream = false;
  /** Microseconds, modulo 2^30: a number with a fraction would be one more object. */
  protected sentAt = 0;

  constructor(rules: Rules) {
    super();
    this.rules = rules;
  }

  /** The next upstream to ask; `undefined` if none remains. */
  protected abstract choose(): Upstream | undefined;
  /** @returns whether the reply is the answer, with which the query is settled */
  protected abstract accept(reply: Reply): boolean;
  /** Asks another upstream after a failure, or settles the query. */
  protected abstract proceedAfter(error: Error): void;
  /** The outcome without an answer. */
  protected abstract giveUp(): Outcome | Promise<Outcome>;
  /** Called with each reply of an upstream that could be read. */
  protected abstract replied(upstream: Upstream, rcode: number, milliseconds: number): void;
  /** Passes the query to an exchange of the upstream, with the time-outs of the attempt. */
  protected abstract send(upstream: Upstream, now: number): void;
  /** Whether queries to this upstream are padded. */
  protected abstract isPadded(upstream: Upstream | undefined): boolean;

  get query(): Query {
    return (this.late as LateOutcome).query;
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

  /** Asks the first upstream. Returns the outcome itself if there is no upstream to ask. */
  protected start(query: Query): Outcome | Promise<Outcome> {
    const late = new LateOutcome(query);
    this.late = late;
    this.attempts = 0;
    const { root } = query;
    if (root.isAbandoned) {
      this.ended();
      return DROPPED;
    }
    const now = this.rules.clock.turnTime();
    // Whole milliseconds need no heap object.
    this.lastStart = Math.ceil(Math.min(now + TOTAL_TIME, query.deadline));
    const upstream = now < this.lastStart ? this.choose() : undefined;
    if (upstream === undefined) {
      this.ended();
      return this.giveUp();
    }
    root.waiter = this;
    this.ask(upstream, now);
    query.shrink();
    return late;
  }

  protected ask(upstream: Upstream, now: number): void {
    this.state = ASKING;
    this.attempts++;
    this.upstream = upstream;
    this.sentAt = microseconds(now);
    this.send(upstream, now);
  }

  /** Asks the next upstream, if there is one and time for it. */
  askNext(): void {
    const now = this.rules.clock.turnTime();
    const upstream = now < this.lastStart ? this.choose() : undefined;
    if (upstream === undefined) this.settle(this.giveUp());
    else this.ask(upstream, now);
  }

  answered(octets: Uint8Array, lent?: PooledBuffer): void {
    try {
      const { upstream } = this;
      const isDatagram = !this.overStream && upstream?.hasOneTransport !== true;
      const isPadded = this.isPadded(upstream);
      this.observe(replyFrom(octets, this.query, isDatagram, isPadded, upstream?.irregular, lent));
    } catch (error) {
      this.faulted(error);
    }
  }

  /** @returns whether the reply is the answer */
  protected observe(reply: Reply): boolean {
    const { upstream } = this;
    if (upstream !== undefined) {
      const { rcode } = reply;
      const milliseconds = this.elapsed(this.rules.clock.turnTime());
      this.replied(upstream, rcode, milliseconds);
      const address = upstream.address.text;
      this.query.trace?.note(`${address} answers ${rcodeName(rcode)} after ${milliseconds.toFixed(2)} ms`, {
        upstream: address,
        rcode: rcodeName(rcode),
        milliseconds,
      });
    }
    return this.accept(reply);
  }

  /** A reply could not be read: the upstream's fault if its octets are malformed, otherwise the program's. */
  protected faulted(error: unknown): void {
    if (error instanceof WireError) this.attemptFailed(this.malformed(error));
    else
      this.settle(this.query.fail(Rcode.SERVFAIL, error instanceof Error ? error : new Error(String(error))));
  }

  failed(error: ExchangeError): void {
    // An exchange without room reports it in a later turn, when the query may be abandoned.
    if (this.state === ASKING) this.attemptFailed(error);
  }

  protected attemptFailed(error: Error): void {
    this.query.trace?.note(
      `${error.message}, after ${this.elapsed(this.rules.clock.turnTime()).toFixed(2)} ms`,
      { error: error.message },
    );
    this.proceedAfter(error);
  }

  override mismatched(message: Uint8Array, length: number): void {
    const { log } = this.rules;
    if (log.debugEnabled) {
      const { name, type } = this.query;
      log.debug(`Wrong reply from ${this.upstream?.address.text} for id: ${this.id}, ${name} ${type}`);
      for (const line of hexdump(message.subarray(0, length))) log.debug(`debug: ${line}`);
    }
    this.query.trace?.note("ignores a reply to another question");
  }

  abandon(): void {
    this.carrier?.letGo(this);
    this.settle(DROPPED);
  }

  protected settle(outcome: Outcome | Promise<Outcome>): void {
    if (this.state === SETTLED) return;
    this.ended();
    // The query may be with the next plugin already.
    const { root } = this.query;
    if (root.waiter === this) root.waiter = undefined;
    // A promise here is always the chain's, which never rejects.
    this.late?.settleWith(outcome);
  }

  /** The query needs no upstream any more. */
  protected ended(): void {
    this.state = SETTLED;
  }

  protected malformed(cause: WireError): ExchangeError {
    const to = this.upstream?.address.text ?? "";
    return new ExchangeError("malformed", this.protocol, to, `reply from ${to}: ${cause.message}`, { cause });
  }

  /** Milliseconds since the attempt was sent. An attempt takes less than a quarter of an hour. */
  protected elapsed(now: number): number {
    return ((microseconds(now) - this.sentAt) & MICROSECONDS) / 1000;
  }

  /** The protocol of the last attempt. */
  protected get protocol(): string {
    return (this.overStream ? this.upstream?.stream : this.upstream?.datagram)?.protocol ?? "";
  }
}

const MICROSECONDS = 0x3fff_ffff;

/** The operator takes the low 32 bits; a remainder would be a function call. */
function microseconds(milliseconds: number): number {
  return (milliseconds * 1000) & MICROSECONDS;
}
