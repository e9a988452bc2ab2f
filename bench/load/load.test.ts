import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { describe, test } from "node:test";
import { decodeMessage, recordTypeName } from "../../src/dns/index.ts";
import { seededRandom } from "../numbers/random.ts";
import { Arrivals } from "./arrivals.ts";
import { DurationLog } from "./duration-log.ts";
import { QueryPool } from "./query-pool.ts";
import { RcodeCounter } from "./rcode-counter.ts";
import { runTcpPipelined } from "./tcp-pipelined.ts";

describe("arrivals", () => {
  test("come at the rate asked for, at random times", () => {
    const arrivals = new Arrivals(1_000, 50_000, seededRandom(5));
    const gaps: number[] = [];
    for (let last = 1_000; gaps.length < 50_000; arrivals.advance()) {
      gaps.push(arrivals.due - last);
      last = arrivals.due;
    }
    const total = gaps.reduce((one, other) => one + other);
    assert.ok(Math.abs(total - 1_000) < 20, `50,000 arrivals in ${total} ms`);
    assert.ok(gaps.every((gap) => gap >= 0));
    // In a Poisson process the gaps are distributed exponentially: 1/e of them exceed the mean.
    const long = gaps.filter((gap) => gap > 0.02).length / gaps.length;
    assert.ok(Math.abs(long - 1 / Math.E) < 0.01, `${long}`);
  });

  test("no rate, no arrivals", () => {
    assert.throws(() => new Arrivals(0, 0, Math.random), RangeError);
    assert.throws(() => new Arrivals(0, Number.NaN, Math.random), RangeError);
  });
});

describe("durations", () => {
  test("more than were expected find room, and percentiles are in microseconds", () => {
    const log = new DurationLog(1);
    for (let n = 100; n >= 1; n--) log.add(n / 1000);
    assert.equal(log.count, 100);
    const rounded = Object.entries(log.percentiles() ?? {}).map(([name, value]) => [name, Math.round(value)]);
    assert.deepEqual(Object.fromEntries(rounded), { p50: 50, p99: 99, p999: 100, max: 100 });
  });

  test("nothing measured, nothing said", () => assert.equal(new DurationLog(10).percentiles(), undefined));
});

describe("queries", () => {
  const pool = QueryPool.parse("www.example.com A\nexample.org AAAA\n");

  test("are encoded once and written with an id", () => {
    const buffer = new Uint8Array(100);
    const length = pool.write(1, 0xabcd, buffer, 4);
    const message = decodeMessage(buffer.subarray(4, 4 + length));
    assert.equal(message.id, 0xabcd);
    const [question] = message.questions;
    assert.ok(question !== undefined);
    assert.equal(`${question.name} ${recordTypeName(question.type)}`, "example.org. AAAA");
  });

  test("begin again after the last one", () => {
    assert.equal(pool.size, 2);
    assert.deepEqual(pool.query(4), pool.query(0));
    assert.notDeepEqual(pool.query(4), pool.query(1));
  });

  test("text that holds none is refused", () => {
    assert.throws(() => QueryPool.parse("\n"), RangeError);
    assert.throws(() => QueryPool.parse("example.org NONSENSE\n"), RangeError);
  });
});

test("answers are counted by rcode", () => {
  const counter = new RcodeCounter();
  for (const rcode of [0, 0, 3]) counter.add(Uint8Array.of(0, 0, 0x81, 0x80 | rcode, 0, 0, 0, 0, 0, 0, 0, 0));
  assert.deepEqual(counter.byName, { NOERROR: 2, NXDOMAIN: 1 });
});

test("a generator that is late waits as long for the last answers as one that is not", async () => {
  const patience = 500;
  let isFirst = true;
  const server = createServer((socket) =>
    socket.on("data", (queries) => {
      // The whole process stands still, longer than the load and the patience together.
      if (isFirst) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * patience);
      isFirst = false;
      socket.write(queries);
    }),
  );
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const queries = QueryPool.parse("www.example.com A\n");
  const options = { queries, firstQuery: 0, port, rate: 2_000, seconds: 0.1, connections: 1, patience };
  const { sent, lost } = await runTcpPipelined(options);
  server.close();
  assert.ok(sent > 100, String(sent));
  assert.equal(lost, 0);
});
