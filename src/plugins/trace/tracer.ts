import type { Timer } from "../../plugin/index.ts";
import {
  afterNext,
  type Handler,
  type Outcome,
  type PluginInstance,
  type Query,
  type Site,
} from "../../plugin/index.ts";
import { readTraceContext, type TraceContext } from "../../plugin/message/trace-context.ts";
import type { SpanSink } from "../../plugin/query/trace.ts";
import { LATENCY_EXEMPLARS, type LatencyExemplars } from "../../plugin/services/latency-exemplars.ts";
import { type ForwardedExchange, QUERY_TAP, type QueryTap } from "../../plugin/services/query-tap.ts";
import { TRACING, type TraceRule, type TracingView } from "../../plugin/services/tracing-view.ts";
import type { Exporter } from "./exporter.ts";
import { finishTrace, newId } from "./finished-trace.ts";
import { QuerySpans } from "./query-spans.ts";
import { Sampler, type SamplingRules } from "./sampling.ts";

export interface TracerOptions {
  readonly rules: SamplingRules;
  /** Whether the span of the query is the client's own. */
  readonly sharesSpans: boolean;
  readonly exporter: Pick<Exporter, "open" | "add" | "stop">;
}

/** Bound for the queries followed at the same time, so that a flood of slow ones takes limited memory. */
const MAX_FOLLOWED = 10_000;

export class Tracer implements PluginInstance, QueryTap, TracingView {
  readonly services = [QUERY_TAP.offer(this), TRACING.offer(this)];
  readonly #options: TracerOptions;
  readonly #site: Site;
  readonly #sampler: Sampler;
  #exemplars: readonly LatencyExemplars[] = [];
  #followed = 0;
  #ruleEnds: Timer | undefined;

  constructor(options: TracerOptions, site: Site) {
    this.#options = options;
    this.#site = site;
    this.#sampler = new Sampler(options.rules);
    site.feed.provide(() => (this.rule === undefined ? [] : [this.rule]));
    site.feed.receive((message) => this.#obey(isRule(message) ? message : undefined));
  }

  get rule(): TraceRule | undefined {
    return this.#sampler.rule;
  }

  setRule(rule: TraceRule | undefined): Promise<void> {
    this.#obey(rule);
    this.#site.feed.publish(rule);
    return this.#site.feed.taken();
  }

  #obey(rule: TraceRule | undefined): void {
    const { clock } = this.#site;
    this.#ruleEnds?.cancel();
    this.#sampler.rule = rule;
    if (rule === undefined) return;
    this.#ruleEnds = clock.after(rule.until - clock.wallTime(), () => {
      this.#sampler.rule = undefined;
    });
  }

  examine(): Promise<void> {
    return this.#options.exporter.open();
  }

  async start(): Promise<void> {
    await this.#options.exporter.open();
    this.#exemplars = LATENCY_EXEMPLARS.among(this.#site.block.plugins());
  }

  async stop(): Promise<void> {
    this.#ruleEnds?.cancel();
    await this.#options.exporter.stop();
  }

  readonly recordsOnly = true;

  readonly handle: Handler = (query, next) => {
    // Internal lookups belong to the trace of their query.
    if (query.spans !== undefined || query.depth > 0) return next(query);
    const { traceHeaders } = query.client;
    const parent = traceHeaders === undefined ? undefined : readTraceContext(traceHeaders);
    const isKept = this.#sampler.keepsFromTheStart(query, parent);
    if ((!isKept && !this.#sampler.looksBack) || this.#followed >= MAX_FOLLOWED) return next(query);
    this.#followed++;
    const spans = new FollowedQuery(this, this.#site, isKept, parent);
    query.spans = spans;
    query.setMetadata("trace/traceid", () => spans.traceId);
    return afterNext(next(query), query, this.#answered);
  };

  readonly handleUpdate: Handler = this.handle;

  wants(query: Query): boolean {
    return query.spans instanceof FollowedQuery;
  }

  forwarded({ query, upstream, port, protocol, sentAt, endedAt, failure }: ForwardedExchange): void {
    if (query.spans instanceof FollowedQuery)
      query.spans.exchanged({ address: upstream, port, protocol }, sentAt, endedAt, failure);
  }

  readonly #answered = (outcome: Outcome, query: Query): Outcome => {
    const { spans } = query;
    if (!(spans instanceof FollowedQuery) || spans.tracer !== this) return outcome;
    this.#followed--;
    // A zone transfer lasts until its last message.
    if (outcome.kind === "stream") outcome.whenEnded(() => this.#finish(outcome, query, spans));
    else this.#finish(outcome, query, spans);
    return outcome;
  };

  #finish(outcome: Outcome, query: Query, spans: FollowedQuery): void {
    spans.end();
    const endedAt = this.#site.clock.now();
    const duration = endedAt - query.receivedAt;
    if (!spans.isKept && !this.#sampler.keepsAfterwards(outcome, duration)) return;
    const { exporter, sharesSpans } = this.#options;
    const { traceId, parent } = spans;
    const epoch = this.#site.clock.wallTime() - endedAt;
    exporter.add(
      finishTrace({ query, outcome, spans, traceId, parent, sharesSpans, epoch, endedAt }, this.#site.random),
    );
    for (const exemplars of this.#exemplars) exemplars.keep(query, duration, traceId);
  }
}

/** The spans of a query with a trace. */
class FollowedQuery extends QuerySpans implements SpanSink {
  readonly tracer: Tracer;
  readonly parent: TraceContext | undefined;
  readonly #site: Site;
  #traceId: string | undefined;

  constructor(tracer: Tracer, site: Site, isKept: boolean, parent: TraceContext | undefined) {
    super(site.clock, isKept);
    this.tracer = tracer;
    this.parent = parent;
    this.#site = site;
  }

  /** Created on first use: most queries that are judged by their outcome are not kept. */
  get traceId(): string {
    this.#traceId ??= this.parent?.traceId ?? newId(this.#site.random) + newId(this.#site.random);
    return this.#traceId;
  }
}

function isRule(message: unknown): message is TraceRule {
  return typeof message === "object" && message !== null && "client" in message && "until" in message;
}
