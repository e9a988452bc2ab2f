import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { mergeSnapshots, withoutGauges } from "./metric-snapshot.ts";
import { MetricsRegistry } from "./metrics.ts";

function registry(): MetricsRegistry {
  return new MetricsRegistry({ processMetrics: false });
}

const entries = { name: "entries", help: "h", acrossThreads: "sum" } as const;
const times = { name: "times", help: "h", buckets: [1, 10] };

/** What a thread counts; all numbers are multiples of `n`. */
function thread(n: number): MetricsRegistry {
  const metrics = registry();
  metrics
    .counter({ name: "q_total", help: "h", labels: ["zone"] })
    .slot("a.")
    .add(n);
  metrics
    .counter({ name: "q_total", help: "h", labels: ["zone"] })
    .slot(`${n}.`)
    .add(n);
  metrics.gauge({ name: "age", help: "h" }).slot().set(n);
  metrics.gauge(entries).slot().set(n);
  metrics.histogram(times).slot().observe(n);
  return metrics;
}

test("of the examples of a bucket the latest is shown, and in OpenMetrics alone", async () => {
  const [first, second] = [registry(), registry()];
  const slot = first.histogram(times).slot();
  slot.observe(0.5);
  slot.exemplify({ traceId: "aa", value: 0.5, at: 10 });
  slot.exemplify({ traceId: "bb", value: 99, at: 10 });
  const other = second.histogram(times).slot();
  other.observe(0.7);
  other.exemplify({ traceId: "cc", value: 0.7, at: 11 });
  other.exemplify({ traceId: "dd", value: 50, at: 9 });
  first.addSource(async () => [second.snapshot()]);
  const { body } = await first.expose("openmetrics");
  assert.deepEqual(
    body.split("\n").filter((line) => line.includes("_bucket")),
    [
      'times_bucket{le="1"} 2 # {trace_id="cc"} 0.7 11.000',
      'times_bucket{le="10"} 2',
      'times_bucket{le="+Inf"} 2 # {trace_id="bb"} 99 10.000',
    ],
  );
  const plain = await first.expose();
  assert.doesNotMatch(plain.body, /trace_id/);
});

describe("merging", () => {
  test("adds counters and histograms up, gauges as they ask for", async () => {
    const [first, second, third] = [thread(1), thread(5), thread(20)];
    first.addSource(async () => [second.snapshot(), third.snapshot()]);
    const { body, errors } = await first.expose();
    const values = body.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    assert.deepEqual(errors, []);
    assert.deepEqual(values, [
      'q_total{zone="a."} 26',
      'q_total{zone="1."} 1',
      'q_total{zone="5."} 5',
      'q_total{zone="20."} 20',
      "age 20",
      "entries 26",
      'times_bucket{le="1"} 1',
      'times_bucket{le="10"} 2',
      'times_bucket{le="+Inf"} 3',
      "times_sum 26",
      "times_count 3",
    ]);
  });

  test("changes neither the registry nor what the source gave", async () => {
    const [first, second] = [thread(1), thread(5)];
    const given = second.snapshot();
    first.addSource(async () => [given]);
    const { body } = await first.expose();
    assert.equal((await first.expose()).body, body);
    assert.deepEqual(given, second.snapshot());
    assert.equal(first.gauge(entries).slot().value, 1);
  });

  test("survives the way to another thread", () => {
    const snapshot = thread(3).snapshot();
    assert.deepEqual(structuredClone(snapshot), snapshot);
  });

  test("leaves out a family that is another one elsewhere", () => {
    const [one, other] = [registry(), registry()];
    one.counter({ name: "m_total", help: "h" }).slot().add(1);
    other.gauge({ name: "m_total", help: "h" }).slot().set(5);
    const third = registry();
    third
      .counter({ name: "m_total", help: "h", labels: ["l"] })
      .slot("x")
      .add(7);
    const [merged] = mergeSnapshots([one.snapshot(), other.snapshot(), third.snapshot()]);
    assert.deepEqual(merged, one.snapshot()[0]);
  });
});

test("families that only another thread has come and go with it", async () => {
  const [first, second] = [registry(), thread(2)];
  const end = first.addSource(async () => [second.snapshot()]);
  assert.match((await first.expose()).body, /^age 2$/m);
  end();
  assert.doesNotMatch((await first.expose()).body, /^age/m);
  first.addSource(async () => [second.snapshot()]);
  assert.match((await first.expose()).body, /^age 2$/m);
});

test("a source that fails costs its own series only, and is reported", async () => {
  const first = thread(1);
  const failure = new Error("as asked");
  first.addSource(() => Promise.reject(failure));
  const { body, errors } = await first.expose();
  assert.match(body, /^age 1$/m);
  assert.deepEqual(errors, [failure]);
});

test("what a thread that ended leaves behind has no gauges", () => {
  assert.deepEqual(
    withoutGauges(thread(1).snapshot()).map(({ name }) => name),
    ["q_total", "times"],
  );
});
