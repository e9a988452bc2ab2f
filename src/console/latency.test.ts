import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LATENCY_CLASSES, latencyClass, percentile } from "./latency.ts";

function counted(durations: readonly number[]): number[] {
  const counts = new Array<number>(LATENCY_CLASSES).fill(0);
  for (const duration of durations) {
    const at = latencyClass(duration);
    counts[at] = (counts[at] ?? 0) + 1;
  }
  return counts;
}

test("a percentile is within the class of the true one: two fifths of it, or a microsecond", () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0, max: 15_000, noNaN: true }), { minLength: 1, maxLength: 200 }),
      fc.constantFrom(0.5, 0.9, 0.99),
      (durations, share) => {
        const sorted = [...durations].sort((one, other) => one - other);
        const truth = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
        const found = percentile(counted(durations), share) ?? Number.NaN;
        assert.ok(Math.abs(found - truth) <= 0.42 * truth + 0.001, `${found} for ${truth}`);
      },
    ),
  );
});

test("what is longer than all classes is in the last, and nothing has no percentile", () => {
  assert.equal(latencyClass(Number.MAX_VALUE), LATENCY_CLASSES - 1);
  assert.equal(latencyClass(0), 0);
  assert.equal(percentile(new Uint32Array(LATENCY_CLASSES), 0.5), null);
});
