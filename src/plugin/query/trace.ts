/** The path of one query through the server, for `explain`, the console and tracing. */
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
   * Set for a query that no client sent, on a server with clients: it is answered like any other, and must not change
   * caches, client counters or logs.
   */
  readonly leavesNoMark?: boolean;
  /** Records a decision and its reason; `facts` for machines. The chain knows the plugin. */
  note(text: string, facts?: Readonly<Record<string, unknown>>): void;
  /** Called by the chain. */
  enter(plugin: string, query: Pick<Asked, "name" | "type">): void;
  leave(plugin: string, outcome: string): void;
  /**
   * What the current plugin records from here on has no part in the answer: the text says what it is instead, such as
   * what the plugins behind it would answer.
   */
  aside?(text: string): void;
}

/** Measures the time of a query in each plugin, for the queries that `trace` follows. */
export interface SpanSink {
  /** The id of the trace: 32 hexadecimal digits, or 16. The decision to keep it may come after the answer. */
  readonly traceId: string;
  /** Called by the chain. @returns the argument for {@link leave} */
  enter(plugin: string): number;
  /** Called by the chain, unless the plugin throws. */
  leave(span: number, outcome: Outcome): void;
}
