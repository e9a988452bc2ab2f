/** The spans of one query: the time in each plugin, and the time spent waiting for upstreams. */
import type { Clock, Outcome } from "../../plugin/index.ts";

export interface QuerySpan {
  /** The name of the plugin or of the operation. */
  readonly name: string;
  /** Index of the parent span; -1 for the query itself. */
  readonly parent: number;
  /** `Clock.now()`, milliseconds. */
  readonly startedAt: number;
  endedAt: number;
  /** Why it failed; `undefined` if it did not. */
  error: string | undefined;
  /** The upstream of an exchange. */
  readonly peer: Peer | undefined;
}

export interface Peer {
  readonly address: string;
  readonly port: number;
  /** `udp`, `tcp`, `tcp-tls`, `https`, `quic`. */
  readonly protocol: string;
}

/** Bound for the spans of one query: rewrites and aliases may send it through the chain again and again. */
const MAX_SPANS = 100;
const MAX_ERROR_LENGTH = 200;
const NO_SPAN = -1;

export class QuerySpans {
  readonly spans: QuerySpan[] = [];
  /** Whether the trace is sent whatever the outcome of the query. */
  readonly isKept: boolean;
  readonly #clock: Clock;
  #open: number[] = [];
  #hasEnded = false;

  constructor(clock: Clock, isKept: boolean) {
    this.#clock = clock;
    this.isKept = isKept;
  }

  enter(plugin: string): number {
    const at = this.#add(plugin, this.#clock.now(), undefined);
    if (at !== NO_SPAN) this.#open.push(at);
    return at;
  }

  leave(at: number, outcome: Outcome): void {
    const position = this.#open.indexOf(at);
    if (position < 0) return;
    const now = this.#clock.now();
    // A plugin that threw did not end its span: it ends with its caller's. Spans of other calls may be open beside
    // it.
    this.#open = this.#open.filter((open) => {
      if (open === at || !this.#isWithin(open, at)) return open !== at;
      this.#end(open, now, "it threw");
      return false;
    });
    this.#end(at, now, outcome.kind === "failed" ? reasonOf(outcome) : undefined);
  }

  /** Records an exchange with an upstream, made by the current plugin. */
  exchanged(peer: Peer, sentAt: number, endedAt: number, error: Error | undefined): void {
    const at = this.#add(peer.protocol, sentAt, peer);
    this.#end(at, endedAt, error === undefined ? undefined : reasonOf({ error }));
  }

  /** The query has its answer. Later background work belongs to no trace. */
  end(): void {
    const now = this.#clock.now();
    for (const open of this.#open) this.#end(open, now, undefined);
    this.#open.length = 0;
    this.#hasEnded = true;
  }

  #add(name: string, startedAt: number, peer: Peer | undefined): number {
    if (this.#hasEnded || this.spans.length >= MAX_SPANS) return NO_SPAN;
    const parent = this.#open.at(-1) ?? NO_SPAN;
    this.spans.push({ name, parent, startedAt, endedAt: startedAt, error: undefined, peer });
    return this.spans.length - 1;
  }

  #end(at: number, now: number, error: string | undefined): void {
    const span = this.spans[at];
    if (span === undefined) return;
    span.endedAt = Math.max(now, span.startedAt);
    span.error = error;
  }

  #isWithin(inner: number, outer: number): boolean {
    let at = inner;
    while (at > outer) at = this.spans[at]?.parent ?? NO_SPAN;
    return at === outer;
  }
}

/** Why there is no answer; empty if the chain gave no reason. */
export function reasonOf(failure: { readonly error: Error | undefined }): string {
  return (failure.error?.message ?? "").slice(0, MAX_ERROR_LENGTH);
}
