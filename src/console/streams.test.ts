import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { QueryRing } from "../plugin/query-ring.ts";
import { QueryStream } from "../plugin/query-stream.ts";
import { makeTestQuery } from "../plugin/testing.ts";
import { QuerySources } from "./streams.ts";

function makeClock(): FakeClock {
  return new FakeClock({ now: 1_000_000, wallTime: 5_000_000 });
}

/** At an even pace within a second. @param rcode what all are answered with */
function write(ring: QueryRing | undefined, clock: FakeClock, count: number, rcode = 0): void {
  const start = clock.now();
  for (let n = 0; n < count; n++) {
    const query = makeTestQuery({ name: "a.example." }, start + (1_000 * n) / count, (asked) => asked.fail());
    ring?.record(query, query.reply({ rcode }), 20, false);
  }
}

test("the queries of all threads are one stream, with one rate", () => {
  const clock = makeClock();
  const stream = new QueryStream(clock);
  const sources = new QuerySources(stream);
  const other = new QueryRing(sources.addThread(), clock);
  let seen = 0;
  const second = (): void => {
    write(stream.ring, clock, 30);
    write(other, clock, 20);
    clock.advance(1_000);
    other.close();
    sources.read(({ weight }) => {
      seen += weight;
    });
    sources.measure(clock.now());
  };
  sources.measure(clock.now());
  for (let count = 0; count < 10; count++) second();
  assert.equal(seen, 500);
  assert.equal(Math.round(sources.rate), 50);
  assert.deepEqual([sources.finished, sources.missed, sources.interval], [500, 0, 1]);
  sources.stop();
  assert.equal(stream.ring, undefined);
});

test("more than anybody can look at: samples stand for the rest, and what nobody saw is counted", () => {
  const clock = makeClock();
  const sources = new QuerySources(new QueryStream(clock));
  const ring = new QueryRing(sources.addThread(), clock);
  let seen = 0;
  sources.measure(clock.now());
  for (let count = 0; count < 5; count++) {
    write(ring, clock, 50_000);
    clock.advance(1_000);
    ring.close();
    sources.read(({ weight }) => {
      seen += weight;
    });
    sources.measure(clock.now());
  }
  assert.equal(sources.finished, 250_000);
  assert.ok(sources.interval >= 20 && sources.interval <= 30, `${sources.interval}`);
  // Each look is for some 2,000 of the queries: one a second sees nearly all that were written.
  assert.ok(
    seen > 150_000 && Math.abs(seen + sources.missed - 250_000) <= 100,
    `${seen} + ${sources.missed}`,
  );
});

test("who looks on too seldom goes on with what comes, and does not run after what was", () => {
  const clock = makeClock();
  const stream = new QueryStream(clock);
  const sources = new QuerySources(stream);
  // What failed is always written.
  write(stream.ring, clock, 5_000, 2);
  clock.advance(1_000);
  let seen = 0;
  sources.read(() => seen++);
  assert.equal(seen, 2_000);
  write(stream.ring, clock, 10, 2);
  clock.advance(1_000);
  sources.read(() => seen++);
  assert.equal(seen, 2_010);
  sources.measure(clock.now());
  clock.advance(1_000);
  sources.measure(clock.now());
  assert.ok(Math.abs(sources.missed - 3_000) <= 2, `${sources.missed}`);
});

test("what is still there can be read once more, in portions", async () => {
  const clock = makeClock();
  const stream = new QueryStream(clock);
  const sources = new QuerySources(stream);
  write(stream.ring, clock, 3_000, 2);
  clock.advance(1_000);
  sources.read(() => undefined);
  let seen = 0;
  await sources.readAll(() => seen++);
  assert.equal(seen, 3_000);
});

test("only so many threads are watched, and each has memory to write to", () => {
  const clock = makeClock();
  const sources = new QuerySources(new QueryStream(clock));
  const buffers = Array.from({ length: 70 }, () => sources.addThread());
  assert.equal(new Set(buffers).size, 70);
  write(new QueryRing(buffers[69] ?? sources.addThread(), clock), clock, 10);
  assert.equal(sources.finished, 0);
});
