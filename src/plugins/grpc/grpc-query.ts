/** Sends one query to the upstreams in turn, each at most once. */
import { Rcode, rcodeName, WireError } from "../../dns/index.ts";
import { LateOutcome } from "../../plugin/chain/late-outcome.ts";
import {
  type Clock,
  DROPPED,
  type Fallthrough,
  type Logger,
  type Next,
  type Outcome,
  type Query,
  type Reply,
} from "../../plugin/index.ts";
import type { Waiter } from "../../plugin/query/query.ts";
import type { Policy } from "../../upstream/config/policy.ts";
import { UpstreamRequest } from "../../upstream/exchange/exchange.ts";
import { replyFrom } from "../../upstream/exchange/forwarded-reply.ts";
import { hexdump } from "../../upstream/exchange/hexdump.ts";
import type { Upstream } from "../../upstream/upstream.ts";
import type { GrpcMetrics } from "./metrics.ts";

/** State that all queries of one `grpc` share. */
export interface GrpcRules {
  /** At least one upstream. */
  readonly upstreams: readonly Upstream[];
  readonly policy: Policy;
  readonly fallthrough: Fallthrough;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: GrpcMetrics;
}

/** Milliseconds for all attempts together. */
const TOTAL_TIME = 5_000;
/** Milliseconds for one attempt while other upstreams remain: a silent upstream must not use up all the time. */
const ATTEMPT_TIME = 2_000;
/** Failed probes in a row after which an upstream is tried last. */
const MAX_FAILS = 2;

export class GrpcQuery extends UpstreamRequest implements Waiter {
  readonly #rules: GrpcRules;
  readonly #query: Query;
  readonly #next: Next;
  #late: LateOutcome | undefined;
  #deadline = 0;
  #upstream: Upstream | undefined;
  #sentAt = 0;
  /** The index of the first upstream to try. */
  #first = 0;
  /** Upstreams that remain, in order; made when the first one fails. */
  #untried: number[] | undefined;
  #lastError: Error | undefined;
  #isMismatched = false;
  #isAbandoned = false;

  constructor(rules: GrpcRules, query: Query, next: Next) {
    super();
    this.#rules = rules;
    this.#query = query;
    this.#next = next;
  }

  get bytes(): Uint8Array {
    return this.#query.bytes;
  }

  get length(): number {
    return this.#query.length;
  }

  get questionEnd(): number {
    return this.#query.questionEnd;
  }

  begin(): Outcome | Promise<Outcome> {
    const { root } = this.#query;
    if (root.isAbandoned) return DROPPED;
    const now = this.#rules.clock.turnTime();
    this.#deadline = Math.min(now + TOTAL_TIME, this.#query.deadline);
    if (now >= this.#deadline) return this.#giveUp();
    const late = new LateOutcome(this.#query);
    this.#late = late;
    root.waiter = this;
    this.#proceed();
    return late;
  }

  answered(octets: Uint8Array): void {
    try {
      this.#accept(replyFrom(octets, this.#query, false, false, this.#upstream?.irregular));
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      if (error instanceof WireError)
        this.#failed(new Error(`reply from ${this.#upstream?.address.text}: ${error.message}`));
      else this.#settle(this.#query.fail(Rcode.SERVFAIL, error));
    }
  }

  override mismatched(message: Uint8Array, length: number): void {
    this.#isMismatched = true;
    const { log } = this.#rules;
    if (!log.debugEnabled) return;
    const { id, name, type } = this.#query;
    log.debug(`Wrong reply for id: ${id}, ${name} ${type}`);
    for (const line of hexdump(message.subarray(0, length))) log.debug(`debug: ${line}`);
  }

  failed(error: Error): void {
    // An exchange without room reports it in a later turn.
    if (this.#isAbandoned) return;
    if (this.#isMismatched) this.#settle(this.#query.reply({ rcode: Rcode.FORMERR }));
    else this.#failed(error);
  }

  abandon(): void {
    this.#isAbandoned = true;
    this.carrier?.letGo(this);
    this.#settle(DROPPED);
  }

  /** Tries the next upstream, if there is one and time for it. */
  #proceed(): void {
    const now = this.#rules.clock.turnTime();
    const upstream = now < this.#deadline ? this.#take() : undefined;
    if (upstream === undefined) {
      this.#settle(this.#giveUp());
      return;
    }
    const left = this.#deadline - now;
    const isLast = (this.#untried?.length ?? this.#rules.upstreams.length - 1) === 0;
    const patience = isLast ? left : Math.min(left, ATTEMPT_TIME);
    this.#upstream = upstream;
    this.#sentAt = now;
    this.#query.trace?.note(`asks ${upstream.address.text} over grpc`, { upstream: upstream.address.text });
    upstream.stream.send(this, patience, patience);
  }

  /** The next upstream by the policy; those that are down come last. */
  #take(): Upstream | undefined {
    const { upstreams, policy } = this.#rules;
    const isUp = (index: number): boolean => upstreams[index]?.health.isDown(MAX_FAILS) === false;
    if (this.#upstream === undefined) {
      this.#first = policy.first(upstreams.length);
      if (isUp(this.#first)) return upstreams[this.#first];
      this.#untried = [this.#first, ...policy.others(this.#first, upstreams.length)];
    }
    this.#untried ??= policy.others(this.#first, upstreams.length);
    const [index] = this.#untried.splice(Math.max(this.#untried.findIndex(isUp), 0), 1);
    return index === undefined ? undefined : upstreams[index];
  }

  #accept(reply: Reply): void {
    const { rcode } = reply;
    this.#observe(rcode);
    if (rcode === Rcode.NXDOMAIN && this.#rules.fallthrough.permits(this.#query.name)) {
      this.#query.trace?.note("the upstream has no such name: falls through");
      this.#settle(this.#next(this.#query));
    } else {
      this.#settle(reply);
    }
  }

  #failed(error: Error): void {
    this.#lastError = error;
    this.#query.trace?.note(error.message, { error: error.message });
    this.#upstream?.health.check();
    this.#proceed();
  }

  #giveUp(): Outcome | Promise<Outcome> {
    const { fallthrough } = this.#rules;
    if (fallthrough.permits(this.#query.name)) return this.#next(this.#query);
    return this.#query.fail(Rcode.SERVFAIL, this.#lastError ?? new Error("no healthy gRPC proxies"));
  }

  #settle(outcome: Outcome | Promise<Outcome>): void {
    const { root } = this.#query;
    if (root.waiter === this) root.waiter = undefined;
    // A promise here is always the chain's, which never rejects.
    this.#late?.settleWith(outcome);
  }

  #observe(rcode: number): void {
    const upstream = this.#upstream;
    if (upstream === undefined) return;
    const milliseconds = this.#rules.clock.turnTime() - this.#sentAt;
    const { text } = upstream.address;
    this.#rules.metrics.answered(text, rcode, milliseconds);
    this.#query.trace?.note(`${text} answers ${rcodeName(rcode)} after ${milliseconds.toFixed(2)} ms`, {
      upstream: text,
      rcode: rcodeName(rcode),
      milliseconds,
    });
  }
}
