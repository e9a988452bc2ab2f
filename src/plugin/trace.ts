/** The way of one query through the server, for `explain`, the console and tracing. */

export interface TraceStep {
  readonly plugin: string;
  /** `Clock.now()`, milliseconds. */
  readonly at: number;
  readonly note: string;
  readonly facts: Readonly<Record<string, unknown>> | undefined;
}

/** Absent on most queries: `query.trace?.note(…)` then costs one check. */
export interface Trace {
  /** What a plugin decided and why, in words; `facts` for machines. The chain knows which plugin speaks. */
  note(text: string, facts?: Readonly<Record<string, unknown>>): void;
  /** Called by the chain. */
  enter(plugin: string): void;
  leave(plugin: string, outcome: string): void;
}
