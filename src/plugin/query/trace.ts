/** The way of one query through the server, for `explain`, the console and tracing. */
import type { Asked } from "../message/asked.ts";
import type { Outcome } from "./outcome.ts";

export interface TraceStep {
  readonly plugin: string;
  /** `Clock.now()`, milliseconds. */
  readonly at: number;
  readonly note: string;
  readonly facts: Readonly<Record<string, unknown>> | undefined;
}

/** Absent on most queries: `query.trace?.note(…)` then costs one check. */
export interface Trace {
  /**
   * Set for a query that no client sent, on a server that serves others: it is answered as any other, and nothing that is kept, counted
   * for clients or logged may show that it was there.
   */
  readonly leavesNoMark?: boolean;
  /** What a plugin decided and why, in words; `facts` for machines. The chain knows which plugin speaks. */
  note(text: string, facts?: Readonly<Record<string, unknown>>): void;
  /** Called by the chain. */
  enter(plugin: string, query: Pick<Asked, "name" | "type">): void;
  leave(plugin: string, outcome: string): void;
}

/** How long a query stays in which plugin: what `trace` wants to know of the queries that it follows. */
export interface SpanSink {
  /** Names the trace: 32 hexadecimal digits, or 16. Whether it is kept may be decided when the query has its answer. */
  readonly traceId: string;
  /** Called by the chain. @returns what {@link leave} wants to have back */
  enter(plugin: string): number;
  /** Called by the chain; not for a plugin that throws. */
  leave(span: number, outcome: Outcome): void;
}
