/** How traces look on the wire. */
import type { FinishedTrace } from "./finished-trace.ts";

/** A collector's format. A trace is encoded when it ends, so that what waits is octets. */
export interface SpanFormat {
  readonly method: "POST" | "PUT";
  readonly contentType: string;
  encode(trace: FinishedTrace): Uint8Array;
  /** The body of a request with these traces. */
  body(traces: readonly Uint8Array[]): Uint8Array;
  /** Headers that go with a body of so many traces. */
  headers?(traces: number): Readonly<Record<string, string>>;
  /** How many of the spans the collector refused, by what it says to a request that it took. */
  refused?(answer: string): number;
}

/** Who sends, as collectors name it. */
export interface Sender {
  readonly service: string;
  readonly hostname: string;
  readonly version: string;
}

/** Texts behind each other, with `separator` between those of the traces. */
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

/** Whole microseconds; a number holds those since 1970 exactly. */
export function microseconds(milliseconds: number): number {
  return Math.round(milliseconds * 1000);
}
