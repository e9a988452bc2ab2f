import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { FakeClock } from "../../lib/time/clock.ts";
import { makeTestQuery, type QuestionOptions, records } from "../testing.ts";
import { QueryReader } from "./query-reader.ts";
import { Bit, makeRingBuffer, QueryRing } from "./query-ring.ts";
import { QueryStream } from "./query-stream.ts";

const SMALL = 40_000;

function queryFor(question: QuestionOptions, at = 0) {
  return makeTestQuery(question, at, (asked) => asked.fail());
}

function all(reader: QueryReader, most = Number.POSITIVE_INFINITY): string[] {
  const seen: string[] = [];
  reader.read(({ octets, nameStart, nameEnd, rcode, client, plugin }) => {
    const name = Buffer.from(octets.slice(nameStart + 1, nameEnd - 1)).toString();
    seen.push(`${name} ${rcode} ${client} ${plugin}`);
  }, most);
  return seen;
}

describe("the stream of finished queries", () => {
  test("is written while it has a listener, and not otherwise", () => {
    const stream = new QueryStream(new FakeClock());
    assert.equal(stream.ring, undefined);
    const first = stream.listen();
    const { ring } = stream;
    const second = stream.listen();
    assert.equal(stream.ring, ring);
    first.stop();
    first.stop();
    assert.equal(stream.ring, ring);
    second.stop();
    assert.equal(stream.ring, undefined);
  });

  test("tells nothing of what the server asks itself, derived from or not", () => {
    const stream = new QueryStream(new FakeClock());
    const listening = stream.listen();
    const [own, derived, other] = ["own.", "derived.", "other."].map((name) => queryFor({ name }));
    assert.ok(own && derived && other);
    own.markOwn();
    derived.derive({ flags: 0 }).markOwn();
    for (const query of [own, derived, other]) stream.ring?.record(query, query.reply({}), 12, false);
    assert.equal(all(listening.reader).length, 1);
  });

  test("tells of a query what everybody wants to know", () => {
    const clock = new FakeClock({ now: 50, wallTime: 1_000_050 });
    const stream = new QueryStream(clock);
    const listening = stream.listen();
    const query = queryFor(
      {
        name: "Web.example.",
        type: "AAAA",
        client: "2001:db8::7",
        clientPort: 4242,
        id: 77,
        edns: { dnssecOk: true },
      },
      50,
    );
    const reply = query.reply({ answer: records("web.example. 30 IN AAAA 2001:db8::1") });
    reply.plugin = "cache";
    stream.ring?.record(query, reply, 99, false);
    clock.advance(3);
    let count = 0;
    for (const each of [listening.reader, listening.again()])
      each.read((seen) => {
        count++;
        assert.equal(seen.client, "2001:db8::7");
        assert.deepEqual(
          [seen.time, seen.duration, seen.type, seen.rcode, seen.port, seen.id, seen.replySize],
          [1_000_050, 3, 28, 0, 4242, 77, 99],
        );
        assert.deepEqual(
          [seen.plugin, seen.listener, seen.transport, seen.answers, seen.ttl, seen.hasEdns, seen.dnssecOk],
          ["cache", query.listener.label, "udp", 1, 30, true, true],
        );
      }, 10);
    assert.equal(count, 2);
  });

  test("tells which queries got no reply, and which were given up", () => {
    const stream = new QueryStream(new FakeClock());
    const { reader } = stream.listen();
    stream.ring?.record(queryFor({ name: "a." }), undefined, 0, true, Bit.SHED);
    reader.read(
      ({ rcode, wasShed, ttl }) => assert.deepEqual([rcode, wasShed, ttl], [undefined, true, undefined]),
      1,
    );
  });

  test("goes by the wall clock, which may be set", () => {
    const clock = new FakeClock({ now: 50, wallTime: 5_000_050 });
    const stream = new QueryStream(clock);
    const { reader } = stream.listen();
    const times: number[] = [];
    for (const set of [0, 0, -2_000_000, 0, 3_000_000]) {
      clock.setWallTime(clock.wallTime() + set);
      clock.advance(1_000);
      const query = queryFor({ name: "a." }, clock.now());
      stream.ring?.record(query, query.reply(), 20, false);
      reader.read(({ time }) => times.push(time), 10);
    }
    assert.deepEqual(times, [5_001_050, 5_002_050, 3_003_050, 3_004_050, 6_005_050]);
  });

  test("gives queries that came together the time at which those behind them came", () => {
    const clock = new FakeClock();
    const stream = new QueryStream(clock);
    const { reader } = stream.listen();
    const record = (at: number, waited = false) => {
      const query = queryFor({ name: "a." }, at);
      stream.ring?.record(query, query.reply(), 20, waited);
    };
    record(0);
    record(0);
    clock.advance(9);
    record(2, true);
    record(4);
    clock.advance(1);
    const durations: number[] = [];
    reader.read(({ duration }) => durations.push(duration), 10);
    assert.deepEqual(durations, [4, 4, 7, 6]);
  });

  /** Queries at an even pace. @returns how many were written, what they stand for, and how many of them failed */
  function paced(
    stream: QueryStream,
    reader: QueryReader,
    { count, perSecond, from = 0 }: { count: number; perSecond: number; from?: number },
  ) {
    const seen = { written: 0, weights: 0, failures: 0 };
    for (let n = 0; n < count; n++) {
      const query = queryFor({ name: "a." }, from + (1_000 * n) / perSecond);
      stream.ring?.record(query, query.reply({ rcode: n % 2 === 0 ? 3 : 0 }), 20, false);
      if (n % 1_000 === 0) stream.ring?.record(query, query.reply({ rcode: 2 }), 20, false);
      if (n % 100 !== 99) continue;
      reader.read(({ weight, rcode }) => {
        seen.written++;
        seen.weights += weight;
        if (rcode === 2) seen.failures++;
      }, 1_000);
    }
    return seen;
  }

  test("samples queries above the wanted rate from the start, and keeps every failure", () => {
    const stream = new QueryStream(new FakeClock({ now: 1_000_000 }));
    const { reader } = stream.listen();
    reader.wantedRate = 1_000;
    const { written, weights, failures } = paced(stream, reader, { count: 30_000, perSecond: 100_000 });
    assert.equal(failures, 30);
    // A third of a second; the first five hundred at full pace, until the writer knows.
    assert.ok(written >= 700 && written <= 1_100, `${written}`);
    assert.ok(Math.abs(weights - 30_030) <= 200, `${weights}`);
    assert.equal(reader.finished, 30_030);
    assert.equal(reader.interval, 100);
  });

  test("writes all again once there are few, and after a pause", () => {
    const stream = new QueryStream(new FakeClock({ now: 1_000_000 }));
    const { reader } = stream.listen();
    reader.wantedRate = 1_000;
    paced(stream, reader, { count: 10_000, perSecond: 100_000 });
    // A read makes the next query be written, whatever the sampling.
    reader.read(() => undefined, 1_000);
    const few = paced(stream, reader, { count: 3_000, perSecond: 500, from: 100 });
    assert.ok(few.written >= 2_400 && Math.abs(few.weights - 3_003) <= 100, JSON.stringify(few));
    assert.equal(reader.interval, 1);
  });

  test("writes all queries without a wanted rate", () => {
    const stream = new QueryStream(new FakeClock({ now: 1_000_000 }));
    const { reader } = stream.listen();
    assert.equal(paced(stream, reader, { count: 5_000, perSecond: 1_000_000 }).written, 5_005);
  });

  test("queries that waited and arrived before others do not lead it astray", () => {
    const stream = new QueryStream(new FakeClock({ now: 1_000_000 }));
    const { reader } = stream.listen();
    reader.wantedRate = 1_000;
    let weights = 0;
    for (let n = 0; n < 5_000; n++) {
      // Now and then one that came two seconds ago.
      const query = queryFor({ name: "a." }, 5_000 + n / 10 - (n % 7 === 0 ? 2_000 : 0));
      stream.ring?.record(query, query.reply(), 20, true);
      reader.read(({ weight }) => {
        weights += weight;
      }, 1_000);
    }
    assert.ok(Math.abs(weights - 5_000) <= 200, `${weights}`);
  });

  test("reads in portions", () => {
    const stream = new QueryStream(new FakeClock());
    const { reader } = stream.listen();
    for (const name of ["a.", "b.", "c."]) {
      const query = queryFor({ name, client: "192.0.2.9" });
      stream.ring?.record(query, query.reply(), 20, false);
    }
    assert.deepEqual(all(reader, 2), ["a 0 192.0.2.9 ", "b 0 192.0.2.9 "]);
    assert.equal(all(reader).length, 1);
    assert.equal(all(reader).length, 0);
  });
});

test("a ring keeps the newest queries, whole and in order, whatever their length", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.record({
          label: fc.integer({ min: 1, max: 60 }),
          v6: fc.boolean(),
          late: fc.boolean(),
          read: fc.boolean(),
        }),
        {
          minLength: 1,
          maxLength: 1_500,
          size: "max",
        },
      ),
      (events) => {
        const clock = new FakeClock();
        const ring = new QueryRing(makeRingBuffer(SMALL), clock);
        const reader = new QueryReader(ring.buffer, false, () => ring.close());
        const written: string[] = [];
        const read: string[] = [];
        for (const [index, { label, v6, late, read: reads }] of events.entries()) {
          const client = v6 ? "2001:db8::1" : "192.0.2.1";
          const name = `${index}`.padEnd(label, "x").slice(0, 63);
          const query = queryFor({ name: `${name}.`, client }, clock.now());
          ring.record(query, query.reply(), 10, late);
          written.push(`${name} 0 ${client} `);
          if (reads) read.push(...all(reader));
        }
        read.push(...all(reader));
        const kept = all(new QueryReader(ring.buffer, true, () => ring.close()));
        assert.deepEqual(kept, written.slice(written.length - kept.length));
        assert.ok(kept.length > 100 || kept.length === written.length);
        // What was read is what was written but for gaps.
        let at = 0;
        for (const line of read) {
          at = written.indexOf(line, at);
          assert.ok(at >= 0, line);
          at++;
        }
        assert.equal(read.at(-1), written.at(-1));
      },
    ),
    { numRuns: 25 },
  );
});
