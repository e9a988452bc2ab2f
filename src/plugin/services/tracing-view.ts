/** Settings of a tracing plugin that an operator can change while it runs. */
import { ServiceKey } from "../contract/service.ts";

/** Traces all queries of some clients, in addition to the Corefile's. */
export interface TraceRule {
  /** An address or a prefix. */
  readonly client: string;
  /** Milliseconds of the Unix epoch at which it ends. */
  readonly until: number;
}

export interface TracingView {
  /** `undefined` without a rule, and once the rule has ended. */
  readonly rule: TraceRule | undefined;
  /** Replaces the rule; `undefined` ends it. A reload drops it. Resolves once all threads apply the change. */
  setRule(rule: TraceRule | undefined): Promise<void>;
}

export const TRACING: ServiceKey<TracingView> = new ServiceKey("tracing");
