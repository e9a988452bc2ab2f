import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import type { HistogramSlot } from "../../plugin/index.ts";
import { AnsweredTogether } from "./answered-together.ts";
import { RequestMetrics } from "./request-metrics.ts";

const PLACE = ["dns://:53", "example.org.", ""] as const;

function setUp() {
  const clock = new FakeClock({ now: 1000 });
  const metrics = new RequestMetrics(new MetricsRegistry());
  const recorder = metrics.recorder(...PLACE);
  const durations = metrics.durations.slot(...PLACE);
  return { clock, metrics, recorder, durations, together: new AnsweredTogether(clock) };
}

/** The count, and the sum in milliseconds. */
function seen({ count, sum }: HistogramSlot): [number, number] {
  return [count, Math.round(sum * 1000)];
}

test("queries that arrived together last until the last of them was answered", () => {
  const { clock, recorder, durations, together } = setUp();
  for (let query = 0; query < 3; query++) {
    together.add(recorder, 1000);
    clock.advance(1);
  }
  assert.equal(durations.count, 0);
  together.close();
  assert.deepEqual(seen(durations), [3, 9]);
  together.close();
  assert.equal(durations.count, 3);
});

test("the arrival of the next group ends the previous one", () => {
  const { clock, recorder, durations, together } = setUp();
  together.add(recorder, 1000);
  together.add(recorder, 1002);
  clock.advance(5);
  assert.deepEqual(seen(durations), [1, 2]);
  together.close();
  assert.deepEqual(seen(durations), [2, 5]);
});

test("several recorders share the end of a group", () => {
  const { clock, metrics, recorder, durations, together } = setUp();
  const other = metrics.recorder("dns://:53", "example.net.", "");
  for (const each of [recorder, other, recorder]) together.add(each, 1000);
  clock.advance(4);
  together.close();
  assert.deepEqual(seen(durations), [2, 8]);
  const others = metrics.durations.slot("dns://:53", "example.net.", "");
  assert.deepEqual(seen(others), [1, 4]);
});

test("idle time counts for no query", async () => {
  const { clock, recorder, durations, together } = setUp();
  together.add(recorder, 1000);
  clock.advance(1);
  await nextTurn();
  assert.deepEqual(seen(durations), [1, 1]);
  clock.advance(60_000);
  together.add(recorder, clock.now());
  together.close();
  assert.deepEqual(seen(durations), [2, 1]);
});

test("an arrival time before the group, as with an internal lookup, gives no negative duration", () => {
  const { clock, recorder, durations, together } = setUp();
  clock.advance(10);
  together.add(recorder, 1010);
  together.add(recorder, 1000);
  together.close();
  assert.deepEqual(seen(durations), [2, 10]);
});
