/** Which queries are traced. */
import { Rcode } from "../../dns/index.ts";
import { PrefixSet } from "../../lib/net/prefix-set.ts";
import type { Outcome, Query } from "../../plugin/index.ts";
import type { TraceContext } from "../../plugin/message/trace-context.ts";
import type { TraceRule } from "../../plugin/services/tracing-view.ts";

export interface SamplingRules {
  /** Each so many queries; 0 for none by that. */
  readonly every: number;
  /** Those that went wrong. */
  readonly errors: boolean;
  /** Those that took longer, in milliseconds. */
  readonly slower: number | undefined;
  /** Those of these clients. */
  readonly clients: PrefixSet<true> | undefined;
  /** Those whose client says that it keeps its part. */
  readonly parent: boolean;
}

export class Sampler {
  readonly #rules: SamplingRules;
  readonly #looksBack: boolean;
  /** Set while it runs; no rule costs no look at the clock. */
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

  /** Whether it is known when the query comes that its trace is kept. */
  keepsFromTheStart(query: Query, parent: TraceContext | undefined): boolean {
    const { every, clients } = this.#rules;
    // Counted in any case: others do not make these come late.
    if (every > 0 && ++this.#count % every === 0) return true;
    if (this.#rules.parent && parent?.isSampled === true) return true;
    if (clients?.lookup(query.client.octets) === true) return true;
    return this.#ruled?.lookup(query.client.octets) === true;
  }

  /** Whether a trace may be worth keeping for what becomes of the query. */
  get looksBack(): boolean {
    return this.#looksBack;
  }

  /** @param duration milliseconds */
  keepsAfterwards(outcome: Outcome, duration: number): boolean {
    const { errors, slower } = this.#rules;
    return (errors && isError(outcome)) || (slower !== undefined && duration > slower);
  }
}

/** What is neither an answer nor a denial. */
export function isError(outcome: Outcome): boolean {
  if (outcome.kind === "dropped" || outcome.kind === "failed") return true;
  return outcome.rcode !== Rcode.NOERROR && outcome.rcode !== Rcode.NXDOMAIN;
}
