/** Sends one query to the upstreams in turn, each at most once. */
import { Rcode } from "../../dns/index.ts";
import type { Fallthrough, Next, Outcome, Query, Reply } from "../../plugin/index.ts";
import type { Policy } from "../../upstream/config/policy.ts";
import type { ExchangeError } from "../../upstream/exchange/exchange-error.ts";
import type { Upstream } from "../../upstream/upstream.ts";
import { ASKING, UpstreamQuery, type UpstreamQueryRules } from "../../upstream/upstream-query.ts";
import type { GrpcMetrics } from "./metrics.ts";

/** State that all queries of one `grpc` share. */
export interface GrpcRules extends UpstreamQueryRules {
  readonly policy: Policy;
  readonly fallthrough: Fallthrough;
  readonly metrics: GrpcMetrics;
}

/** Milliseconds for one attempt while other upstreams remain: a silent upstream must not use up all the time. */
const ATTEMPT_TIME = 2_000;
/** Failed probes in a row after which an upstream is tried last. */
const MAX_FAILS = 2;

export class GrpcQuery extends UpstreamQuery<GrpcRules> {
  readonly #next: Next;
  /** The index of the first upstream to try. */
  #first = 0;
  /** Upstreams that remain, in order; made when the first one fails. */
  #untried: number[] | undefined;
  #lastError: Error | undefined;
  #isMismatched = false;

  constructor(rules: GrpcRules, next: Next) {
    super(rules);
    this.#next = next;
    this.overStream = true;
  }

  static begin(rules: GrpcRules, query: Query, next: Next): Outcome | Promise<Outcome> {
    return new GrpcQuery(rules, next).start(query);
  }

  override mismatched(message: Uint8Array, length: number): void {
    this.#isMismatched = true;
    super.mismatched(message, length);
  }

  override failed(error: ExchangeError): void {
    if (this.#isMismatched && this.state === ASKING) this.settle(this.query.reply({ rcode: Rcode.FORMERR }));
    else super.failed(error);
  }

  protected override isPadded(): boolean {
    return false;
  }

  protected override send(upstream: Upstream, now: number): void {
    const left = this.lastStart - now;
    const isLast = (this.#untried?.length ?? this.rules.upstreams.length - 1) === 0;
    const patience = isLast ? left : Math.min(left, ATTEMPT_TIME);
    this.query.trace?.note(`asks ${upstream.address.text} over grpc`, { upstream: upstream.address.text });
    upstream.stream.send(this, patience, patience);
  }

  /** The next upstream by the policy; those that are down come last. */
  protected override choose(): Upstream | undefined {
    const { upstreams, policy } = this.rules;
    const isUp = (index: number): boolean => upstreams[index]?.health.isDown(MAX_FAILS) === false;
    if (this.upstream === undefined) {
      this.#first = policy.first(upstreams.length);
      if (isUp(this.#first)) return upstreams[this.#first];
      this.#untried = [this.#first, ...policy.others(this.#first, upstreams.length)];
    }
    this.#untried ??= policy.others(this.#first, upstreams.length);
    const [index] = this.#untried.splice(Math.max(this.#untried.findIndex(isUp), 0), 1);
    return index === undefined ? undefined : upstreams[index];
  }

  protected override accept(reply: Reply): boolean {
    if (reply.rcode === Rcode.NXDOMAIN && this.rules.fallthrough.permits(this.query.name)) {
      this.query.trace?.note("the upstream has no such name: falls through");
      this.settle(this.#next(this.query));
      return false;
    }
    this.settle(reply);
    return true;
  }

  protected override proceedAfter(error: Error): void {
    this.#lastError = error;
    this.upstream?.health.check();
    this.askNext();
  }

  protected override giveUp(): Outcome | Promise<Outcome> {
    if (this.rules.fallthrough.permits(this.query.name)) return this.#next(this.query);
    return this.query.fail(Rcode.SERVFAIL, this.#lastError ?? new Error("no healthy gRPC proxies"));
  }

  protected override replied(upstream: Upstream, rcode: number, milliseconds: number): void {
    this.rules.metrics.answered(upstream.address.text, rcode, milliseconds);
  }
}
