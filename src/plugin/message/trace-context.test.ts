import assert from "node:assert/strict";
import { test } from "node:test";
import type { TraceHeaders } from "./endpoint.ts";
import { readTraceContext } from "./trace-context.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

const READ: readonly (readonly [TraceHeaders, string, boolean | undefined])[] = [
  [{ traceparent: `00-${TRACE}-${SPAN}-01` }, TRACE, true],
  [{ traceparent: `00-${TRACE}-${SPAN}-00` }, TRACE, false],
  // What a later version has behind the flags is its own.
  [{ traceparent: `cc-${TRACE}-${SPAN}-01-what` }, TRACE, true],
  [{ b3: `${TRACE}-${SPAN}-1` }, TRACE, true],
  [{ b3: `${TRACE}-${SPAN}-d-05e3ac9a4f6e3b90` }, TRACE, true],
  [{ b3: `${TRACE}-${SPAN}-0` }, TRACE, false],
  [{ b3: `${TRACE.slice(16)}-${SPAN}` }, TRACE.slice(16), undefined],
  [{ "x-b3-traceid": TRACE.toUpperCase(), "x-b3-spanid": SPAN, "x-b3-sampled": "true" }, TRACE, true],
  [{ "x-b3-traceid": TRACE, "x-b3-spanid": SPAN, "x-b3-flags": "1" }, TRACE, true],
  [{ "x-b3-traceid": TRACE, "x-b3-spanid": [SPAN, "other"] }, TRACE, undefined],
  // The first that is sound counts.
  [{ traceparent: "00-1-2-3", b3: `${TRACE}-${SPAN}-1` }, TRACE, true],
];

for (const [headers, traceId, isSampled] of READ) {
  test(`reads ${JSON.stringify(headers)}`, () => {
    assert.deepEqual(readTraceContext(headers), { traceId, spanId: SPAN, isSampled });
  });
}

for (const headers of [
  {},
  { traceparent: "" },
  { traceparent: `00-${TRACE}-${SPAN}` },
  { traceparent: `00-${TRACE}-${SPAN}-01-more` },
  { traceparent: `ff-${TRACE}-${SPAN}-01` },
  { traceparent: `00-${TRACE.toUpperCase()}-${SPAN}-01` },
  { traceparent: `00-${"0".repeat(32)}-${SPAN}-01` },
  { traceparent: `00-${TRACE}-${"0".repeat(16)}-01` },
  { traceparent: `cc-${TRACE}-${SPAN}-01-${"x".repeat(10_000)}` },
  { b3: "0" },
  { b3: `${TRACE}-${SPAN}-2` },
  { b3: `${TRACE}${TRACE}-${SPAN}` },
  { "x-b3-traceid": TRACE },
  { "x-b3-traceid": "evil\r\nheader", "x-b3-spanid": SPAN },
] as TraceHeaders[]) {
  test(`finds no trace in ${JSON.stringify(headers).slice(0, 80)}`, () => {
    assert.equal(readTraceContext(headers), undefined);
  });
}
