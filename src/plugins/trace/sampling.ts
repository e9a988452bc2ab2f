/** Selects the queries to trace. */
import { Rcode } from "../../dns/index.ts";
import { PrefixSet } from "../../lib/net/prefix-set.ts";
import type { Outcome, Query } from "../../plugin/index.ts";
import type { TraceContext } from "../../plugin/message/trace-context.ts";
import type { TraceRule } from "../../plugin/services/tracing-view.ts";

export interface SamplingRules {
  /** Traces one in this many queries; 0 for no such sampling. */
  readonly every: number;
  /** Traces queries that fail. */
  readonly errors: boolean;
  /** Traces queries that took longer, in milliseconds. */
  readonly slower: number | undefined;
  /** Traces queries of these clients. */
  readonly clients: PrefixSet<true> | undefined;
  /** Traces queries whose client keeps its part of the trace. */
  readonly parent: boolean;
}

export class Sampler {
  readonly #rules: SamplingRules;
  readonly #looksBack: boolean;
  /** Set while the plugin runs; without a rule the clock is not read. */
  #rule: TraceRule | undefined;
  #ruled: PrefixSet<true> | undefined;
  #count = 0;

  constructor(rules: SamplingRules) {
    this.#rules = rules;
    this.#looksBack = rules.errors || rules.slower !== undefined;
  }

  get rule(): TraceRule | undefined {
    return this.#rule;
  }

  set rule(rule: TraceRule | undefined) {
    this.#rule = rule;
    this.#ruled = undefined;
    if (rule === undefined) return;
    this.#ruled = new PrefixSet<true>();
    this.#ruled.add(rule.client, true);
  }

  /** Whether the trace is certain to be kept when the query arrives. */
  keepsFromTheStart(query: Query, parent: TraceContext | undefined): boolean {
    const { every, clients } = this.#rules;
    // Counted in any case: other rules do not delay these samples.
    if (every > 0 && ++this.#count % every === 0) return true;
    if (this.#rules.parent && parent?.isSampled === true) return true;
    if (clients?.lookup(query.client.octets) === true) return true;
    return this.#ruled?.lookup(query.client.octets) === true;
  }

  /** Whether the outcome of a query may decide that its trace is kept. */
  get looksBack(): boolean {
    return this.#looksBack;
  }

  /** @param duration milliseconds */
  keepsAfterwards(outcome: Outcome, duration: number): boolean {
    const { errors, slower } = this.#rules;
    return (errors && isError(outcome)) || (slower !== undefined && duration > slower);
  }
}

/** Whether an outcome is neither an answer nor a denial. */
export function isError(outcome: Outcome): boolean {
  if (outcome.kind === "dropped" || outcome.kind === "failed") return true;
  return outcome.rcode !== Rcode.NOERROR && outcome.rcode !== Rcode.NXDOMAIN;
}
