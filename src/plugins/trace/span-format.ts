/** The wire format of traces. */
import type { FinishedTrace } from "./finished-trace.ts";

/** A collector's format. A trace is encoded when it ends, so that only bytes wait. */
export interface SpanFormat {
  readonly method: "POST" | "PUT";
  readonly contentType: string;
  encode(trace: FinishedTrace): Uint8Array;
  /** The body of a request with these traces. */
  body(traces: readonly Uint8Array[]): Uint8Array;
  /** Headers for a body with this number of traces. */
  headers?(traces: number): Readonly<Record<string, string>>;
  /** The number of spans that the collector rejected, from its response to an accepted request. */
  refused?(answer: string): number;
}

/** The sender's identity in spans. */
export interface Sender {
  readonly service: string;
  readonly hostname: string;
  readonly version: string;
}

/** Concatenates texts, with `separator` between traces. */
export function joined(
  before: string,
  traces: readonly Uint8Array[],
  separator: string,
  after: string,
): Uint8Array {
  const parts: Uint8Array[] = [Buffer.from(before)];
  for (const [at, trace] of traces.entries()) {
    if (at > 0) parts.push(Buffer.from(separator));
    parts.push(trace);
  }
  parts.push(Buffer.from(after));
  return Buffer.concat(parts);
}

/** Whole microseconds; a number represents those since 1970 exactly. */
export function microseconds(milliseconds: number): number {
  return Math.round(milliseconds * 1000);
}
