/** The trace context of a client's query: W3C Trace Context, level 1, and the headers of B3. */
import type { TraceHeaders } from "./endpoint.ts";

export interface TraceContext {
  /** 32 digits in lower case, or 16 from a client of Zipkin. */
  readonly traceId: string;
  /** The span of the client, 16 digits in lower case. */
  readonly spanId: string;
  /**
   * Whether the client's part of the trace is recorded; `undefined` if the client leaves the decision to the server.
   */
  readonly isSampled: boolean | undefined;
}

/** Headers that may name a trace. */
export const TRACE_HEADERS: readonly string[] = ["traceparent", "b3", "x-b3-traceid"];

/** All headers that {@link readTraceContext} looks at. */
export const TRACE_CONTEXT_HEADERS: readonly string[] = [
  ...TRACE_HEADERS,
  "x-b3-spanid",
  "x-b3-sampled",
  "x-b3-flags",
];

/** @returns `undefined` if the headers name no trace, or are malformed: a client may send anything */
export function readTraceContext(headers: TraceHeaders): TraceContext | undefined {
  return (
    readTraceparent(headerIn(headers, "traceparent")) ??
    readSingleB3(headerIn(headers, "b3")) ??
    readSeveralB3(headers)
  );
}

/** `traceparent: 00-<trace>-<span>-<flags>`; later versions may have more behind the flags. */
function readTraceparent(value: string): TraceContext | undefined {
  const match = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(value);
  if (match === null || (match[1] === "00" && match[5] !== undefined)) return undefined;
  return context(match[2], match[3], (Number.parseInt(match[4] ?? "0", 16) & 1) === 1);
}

/** `b3: <trace>-<span>[-<sampled>[-<parent>]]`. */
function readSingleB3(value: string): TraceContext | undefined {
  const match = /^([0-9a-f]{32}|[0-9a-f]{16})-([0-9a-f]{16})(?:-([01d])(?:-[0-9a-f]{16})?)?$/.exec(value);
  if (match === null) return undefined;
  return context(match[1], match[2], match[3] === undefined ? undefined : match[3] !== "0");
}

function readSeveralB3(headers: TraceHeaders): TraceContext | undefined {
  const traceId = headerIn(headers, "x-b3-traceid").toLowerCase();
  const spanId = headerIn(headers, "x-b3-spanid").toLowerCase();
  if (!/^([0-9a-f]{16}){1,2}$/.test(traceId) || !/^[0-9a-f]{16}$/.test(spanId)) return undefined;
  const sampled = headerIn(headers, "x-b3-sampled").toLowerCase();
  if (headerIn(headers, "x-b3-flags") === "1") return context(traceId, spanId, true);
  return context(traceId, spanId, sampled === "" ? undefined : sampled === "1" || sampled === "true");
}

function context(
  traceId: string | undefined,
  spanId: string | undefined,
  isSampled: boolean | undefined,
): TraceContext | undefined {
  if (traceId === undefined || spanId === undefined) return undefined;
  // An id of zeros means no id.
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, isSampled };
}

function headerIn(headers: TraceHeaders, name: string): string {
  const value = headers[name];
  const text = typeof value === "string" ? value : (value?.[0] ?? "");
  return text.length > MAX_LENGTH ? "" : text.trim();
}

/** Longer than any valid header. */
const MAX_LENGTH = 256;
