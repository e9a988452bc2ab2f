import assert from "node:assert/strict";
import { test } from "node:test";
import { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import { FakeClock, MemoryLog } from "../../plugin/testing.ts";
import type { CollectorAnswer, CollectorRequest } from "./collector.ts";
import { Exporter, type ExporterOptions } from "./exporter.ts";
import type { FinishedTrace } from "./finished-trace.ts";
import type { SpanFormat } from "./span-format.ts";

/** Traces whose encoding is their ids, separated by commas. */
const PLAIN: SpanFormat = {
  method: "POST",
  contentType: "text/plain",
  encode: (trace) => Buffer.from(trace.traceId),
  body: (traces) => Buffer.from(traces.map((trace) => Buffer.from(trace).toString()).join()),
  refused: (answer) => (answer === "" ? 0 : Number(answer)),
};

function trace(traceId: string, children = 0): FinishedTrace {
  return {
    traceId,
    rootId: "1",
    parentId: undefined,
    isShared: false,
    startedAt: 0,
    endedAt: 0,
    failed: false,
    error: undefined,
    tags: { name: ".", type: "A", rcode: "NOERROR", proto: "udp", remote: "192.0.2.1" },
    client: { address: "192.0.2.1", port: 53, family: 4 },
    children: new Array(children),
  };
}

class Bench {
  readonly clock = new FakeClock();
  readonly log = new MemoryLog();
  readonly metrics = new MetricsRegistry({ processMetrics: false });
  readonly bodies: string[] = [];
  isClosed = false;
  /** The answer of the collector. */
  answer: () => Promise<CollectorAnswer> = async () => TAKEN;
  readonly exporter: Exporter;

  constructor(options: Partial<ExporterOptions> = {}) {
    this.exporter = new Exporter({
      format: PLAIN,
      collector: {
        place: "http://tracer/",
        open: async () => undefined,
        send: ({ body }: CollectorRequest) => {
          this.bodies.push(Buffer.from(body).toString());
          return this.answer();
        },
        close: () => {
          this.isClosed = true;
        },
      },
      headers: {},
      maxOctets: 64 * 1024,
      maxSpans: Number.POSITIVE_INFINITY,
      batchSpans: 3,
      interval: 1_000,
      clock: this.clock,
      random: { fraction: () => 0, unpredictable: () => 1 },
      log: this.log,
      metrics: this.metrics,
      ...options,
    });
  }

  async count(name: string): Promise<number> {
    const { body } = await this.metrics.expose();
    return Number(
      body
        .split("\n")
        .find((line) => line.startsWith(`portolan_trace_${name} `))
        ?.split(" ")[1],
    );
  }
}

const TAKEN: CollectorAnswer = { status: 202, retryAfter: undefined, text: "" };
const UNWELL: CollectorAnswer = { status: 503, retryAfter: undefined, text: "" };

test("spans are sent when a batch is full, or after the interval", async () => {
  const { exporter, clock, bodies } = new Bench();
  exporter.add(trace("a"));
  exporter.add(trace("b"));
  assert.deepEqual(bodies, []);
  exporter.add(trace("c"));
  assert.deepEqual(bodies, ["a,b,c"]);
  await clock.settle();
  exporter.add(trace("d"));
  await clock.settle(999);
  assert.equal(bodies.length, 1);
  await clock.settle(1);
  assert.deepEqual(bodies, ["a,b,c", "d"]);
});

test("spans that arrive during a request follow it, in batches", async () => {
  const bench = new Bench();
  const { promise, resolve } = Promise.withResolvers<CollectorAnswer>();
  bench.answer = () => promise;
  for (const id of "abcdefgh") bench.exporter.add(trace(id));
  assert.deepEqual(bench.bodies, ["a,b,c"]);
  resolve(TAKEN);
  await bench.clock.settle();
  assert.deepEqual(bench.bodies, ["a,b,c", "d,e,f"]);
  await bench.clock.settle(1_000);
  assert.deepEqual(bench.bodies, ["a,b,c", "d,e,f", "g,h"]);
});

test("an unreachable collector is tried again after growing pauses, and gets everything in order", async () => {
  const bench = new Bench();
  bench.answer = () => Promise.reject(new Error("connect ECONNREFUSED"));
  for (const id of "abcd") bench.exporter.add(trace(id));
  await bench.clock.settle();
  for (const wait of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
    const before = bench.bodies.length;
    await bench.clock.settle(wait - 1);
    assert.equal(bench.bodies.length, before, `asked again before ${wait} ms`);
    await bench.clock.settle(1);
    assert.equal(bench.bodies.length, before + 1, `not asked again after ${wait} ms`);
  }
  bench.answer = async () => TAKEN;
  await bench.clock.settle(31_000);
  assert.equal(bench.bodies.at(-2), "a,b,c");
  assert.equal(bench.bodies.at(-1), "d");
  assert.equal(await bench.count("sent_spans_total"), 4);
  assert.deepEqual(bench.log.lines, [
    "[ERROR] http://tracer/ cannot be reached: connect ECONNREFUSED: trying again",
    "[INFO] http://tracer/ accepts spans again",
  ]);
});

test("the collector can set the time of the next request", async () => {
  const bench = new Bench();
  bench.answer = async () => ({ status: 429, retryAfter: 60_000, text: "slow down\nplease" });
  for (const id of "abc") bench.exporter.add(trace(id));
  await bench.clock.settle(59_999);
  assert.equal(bench.bodies.length, 1);
  bench.answer = async () => TAKEN;
  await bench.clock.settle(1);
  assert.equal(bench.bodies.length, 2);
  assert.match(bench.log.lines[0] ?? "", / answers 429 \(slow down\): trying again/);
});

for (const status of [408, 429, 500, 501, 507, 599])
  test(`spans that a collector answers with ${status} wait, are counted as waiting, and are sent again`, async () => {
    const bench = new Bench();
    bench.answer = async () => ({ ...UNWELL, status });
    for (const id of ["aa", "bb", "cc"]) bench.exporter.add(trace(id));
    await bench.clock.settle();
    assert.equal(await bench.count("waiting_bytes"), 6);
    bench.answer = async () => TAKEN;
    await bench.clock.settle(1_000);
    assert.deepEqual(bench.bodies, ["aa,bb,cc", "aa,bb,cc"]);
    assert.equal(await bench.count("waiting_bytes"), 0);
  });

test("rejected spans are not sent again", async () => {
  const bench = new Bench();
  bench.answer = async () => ({ status: 400, retryAfter: undefined, text: "" });
  for (const id of "abc") bench.exporter.add(trace(id));
  await bench.clock.settle(100_000);
  assert.equal(bench.bodies.length, 1);
  assert.equal(await bench.count('dropped_spans_total{reason="refused"}'), 3);
  bench.answer = async () => ({ status: 200, retryAfter: undefined, text: "2" });
  for (const id of "def") bench.exporter.add(trace(id));
  await bench.clock.settle();
  assert.equal(await bench.count('dropped_spans_total{reason="refused"}'), 5);
  assert.equal(await bench.count("sent_spans_total"), 1);
});

test("a full queue drops the oldest spans, and counts them", async () => {
  const bench = new Bench({ maxSpans: 10 });
  bench.answer = async () => UNWELL;
  for (const id of "abc") bench.exporter.add(trace(id));
  await bench.clock.settle();
  for (let one = 0; one < 100; one++) bench.exporter.add(trace(`t${one}`, 1));
  assert.equal(await bench.count('dropped_spans_total{reason="full"}'), 190);
  assert.ok((await bench.count("waiting_bytes")) < 100);
  bench.answer = async () => TAKEN;
  await bench.clock.settle(60_000);
  assert.deepEqual(bench.bodies.slice(-6), ["a,b,c", "t95", "t96", "t97", "t98", "t99"]);
});

test("the waiting spans of several server blocks are added up", async () => {
  const bench = new Bench();
  const other = new Bench({ metrics: bench.metrics });
  for (const { exporter } of [bench, other]) exporter.add(trace("a"));
  const ofBoth = await bench.count("waiting_bytes");
  await other.exporter.stop();
  const ofOne = await bench.count("waiting_bytes");
  assert.ok(ofOne > 0);
  assert.equal(ofBoth, 2 * ofOne);
});

test("a stop sends the waiting spans, and does not wait for an unreachable collector", async () => {
  const bench = new Bench();
  bench.exporter.add(trace("a"));
  await bench.exporter.stop();
  assert.deepEqual(bench.bodies, ["a"]);
  assert.equal(bench.isClosed, true);
  assert.equal(bench.clock.pendingTimers, 0);

  const away = new Bench();
  away.answer = async () => UNWELL;
  for (const id of "abc") away.exporter.add(trace(id));
  await away.clock.settle();
  away.exporter.add(trace("d", 4));
  await away.exporter.stop();
  assert.equal(away.bodies.length, 1);
  assert.equal(await away.count('dropped_spans_total{reason="unsent"}'), 8);
  assert.equal(away.clock.pendingTimers, 0);

  const silent = new Bench();
  silent.answer = () => new Promise(() => undefined);
  for (const id of "abc") silent.exporter.add(trace(id));
  const stopped = silent.exporter.stop();
  await silent.clock.settle(2_000);
  await stopped;
  assert.equal(silent.isClosed, true);
  assert.equal(await silent.count('dropped_spans_total{reason="unsent"}'), 3);
});
