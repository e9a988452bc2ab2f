/** What a plugin that traces queries lets an operator set while it runs. */
import { ServiceKey } from "../contract/service.ts";

/** All queries of some clients are traced, besides what the Corefile says. */
export interface TraceRule {
  /** An address or a prefix. */
  readonly client: string;
  /** Milliseconds of the Unix epoch at which it ends. */
  readonly until: number;
}

export interface TracingView {
  /** `undefined` without one, and once it has ended. */
  readonly rule: TraceRule | undefined;
  /**
   * Puts one into force in place of the one before; `undefined` ends it. It goes with the next reload.
   * Resolves once all threads go by it.
   */
  setRule(rule: TraceRule | undefined): Promise<void>;
}

export const TRACING: ServiceKey<TracingView> = new ServiceKey("tracing");
