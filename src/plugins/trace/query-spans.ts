/** The spans of one query: how long it stayed in which plugin, and what it waited for elsewhere. */
import type { Clock, Outcome } from "../../plugin/index.ts";

export interface QuerySpan {
  /** The plugin, or what was done. */
  readonly name: string;
  /** Place of the span that this one is a part of; -1 for the query itself. */
  readonly parent: number;
  /** `Clock.now()`, milliseconds. */
  readonly startedAt: number;
  endedAt: number;
  /** Why it failed, in words; `undefined` where it did not. */
  error: string | undefined;
  /** The upstream that was asked. */
  readonly peer: Peer | undefined;
}

export interface Peer {
  readonly address: string;
  readonly port: number;
  /** `udp`, `tcp`, `tcp-tls`, `https`, `quic`. */
  readonly protocol: string;
}

/** Spans of one query: rewrites and aliases may send it through the chain again and again. */
const MAX_SPANS = 100;
const MAX_ERROR_LENGTH = 200;
const NO_SPAN = -1;

export class QuerySpans {
  readonly spans: QuerySpan[] = [];
  /** Whether it is sent whatever becomes of the query. */
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
    // A plugin that threw did not leave: it ends with the one that called it. Others may be under way beside it.
    this.#open = this.#open.filter((open) => {
      if (open === at || !this.#isWithin(open, at)) return open !== at;
      this.#end(open, now, "it threw");
      return false;
    });
    this.#end(at, now, outcome.kind === "failed" ? reasonOf(outcome) : undefined);
  }

  /** An upstream answered the plugin that the query is in, or did not. */
  exchanged(peer: Peer, sentAt: number, endedAt: number, error: Error | undefined): void {
    const at = this.#add(peer.protocol, sentAt, peer);
    this.#end(at, endedAt, error === undefined ? undefined : reasonOf({ error }));
  }

  /** The query has its answer. What is done in the background from here on belongs to nobody's trace. */
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

/** Why there is no answer, in words; empty where the chain gave no reason. */
export function reasonOf(failure: { readonly error: Error | undefined }): string {
  return (failure.error?.message ?? "").slice(0, MAX_ERROR_LENGTH);
}
