import assert from "node:assert/strict";
import { test } from "node:test";
import { SpanQueue } from "./span-queue.ts";

/** Reproducible pseudo-random numbers. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

for (let seed = 1; seed <= 10; seed++) {
  test(`keeps the same spans as a plain list of bounded size (seed ${seed})`, () => {
    const below = numbers(seed);
    const maxOctets = 64 * 1024 + below(200_000);
    const maxSpans = 50 + below(400);
    const queue = new SpanQueue(maxOctets, maxSpans);
    const list: { readonly octets: Uint8Array; readonly spans: number }[] = [];
    const sum = (count: (one: (typeof list)[number]) => number) =>
      list.reduce((total, one) => total + count(one), 0);
    for (let step = 0; step < 600; step++) {
      if (below(10) === 0) {
        const most = 1 + below(30);
        const batch = queue.take(most);
        const expected: typeof list = [];
        while (
          list[0] !== undefined &&
          (expected.length === 0 || expected.reduce((all, { spans }) => all + spans, list[0].spans) <= most)
        )
          expected.push(...list.splice(0, 1));
        assert.deepEqual(
          batch.traces.map((trace) => Buffer.from(trace).toString("hex")),
          expected.map(({ octets }) => Buffer.from(octets).toString("hex")),
        );
        assert.equal(
          batch.spans,
          expected.reduce((all, { spans }) => all + spans, 0),
        );
      } else {
        const octets = new Uint8Array(below(5_000)).fill(step);
        const spans = 1 + below(12);
        let lost = 0;
        while (
          sum((one) => one.octets.length + 8) + octets.length + 8 > maxOctets ||
          sum((one) => one.spans) + spans > maxSpans
        )
          lost += list.shift()?.spans ?? 0;
        list.push({ octets, spans });
        assert.equal(queue.add(octets, spans), lost);
      }
      assert.equal(
        queue.spans,
        sum((one) => one.spans),
      );
      assert.equal(
        queue.octets,
        sum((one) => one.octets.length + 8),
      );
    }
  });
}

test("a trace that is larger than the queue is dropped, and evicts nothing", () => {
  const queue = new SpanQueue(64 * 1024, 10);
  queue.add(new Uint8Array(10), 2);
  assert.equal(queue.add(new Uint8Array(65 * 1024), 3), 3);
  assert.equal(queue.add(new Uint8Array(1), 11), 11);
  assert.equal(queue.spans, 2);
});
