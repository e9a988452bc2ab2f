import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/time/clock.ts";
import { QueryRing } from "../plugin/stream/query-ring.ts";
import { QueryStream } from "../plugin/stream/query-stream.ts";
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
    sources.measure(clock.now(), true);
  };
  sources.measure(clock.now(), true);
  for (let count = 0; count < 10; count++) second();
  assert.equal(seen, 500);
  assert.equal(Math.round(sources.rate), 50);
  assert.deepEqual([sources.finished, sources.missed, sources.interval], [500, 0, 1]);
  sources.stop();
  assert.equal(stream.ring, undefined);
});

test("above the limit, samples represent the rest, and skipped queries are counted", () => {
  const clock = makeClock();
  const sources = new QuerySources(new QueryStream(clock));
  const ring = new QueryRing(sources.addThread(), clock);
  let seen = 0;
  sources.measure(clock.now(), true);
  for (let count = 0; count < 5; count++) {
    write(ring, clock, 50_000);
    clock.advance(1_000);
    ring.close();
    sources.read(({ weight }) => {
      seen += weight;
    });
    sources.measure(clock.now(), true);
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
  sources.measure(clock.now(), true);
  clock.advance(1_000);
  sources.measure(clock.now(), true);
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

test("a busy thread writes fewer queries while no client follows single ones", () => {
  const clock = makeClock();
  const sources = new QuerySources(new QueryStream(clock));
  const ring = new QueryRing(sources.addThread(), clock);
  const writtenOf = (count: number, watched: boolean): number => {
    let written = 0;
    write(ring, clock, count);
    clock.advance(1_000);
    ring.close();
    sources.read(() => {
      written++;
    });
    sources.measure(clock.now(), watched);
    return written;
  };
  const settled = (count: number, watched: boolean): number => {
    for (let second = 0; second < 3; second++) writtenOf(count, watched);
    return writtenOf(count, watched);
  };
  sources.measure(clock.now(), false);
  const unwatched = settled(50_000, false);
  assert.ok(unwatched >= 300 && unwatched <= 600, `${unwatched} unwatched`);
  const watched = settled(50_000, true);
  assert.ok(watched >= 1_600 && watched <= 2_500, `${watched} watched`);
  // A thread with time to spare writes what it can, watched or not.
  const quiet = settled(1_500, false);
  assert.ok(quiet >= 1_400, `${quiet} of 1,500`);
  sources.stop();
});
