import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FixedEndpoint } from "../../plugin/message/endpoint.ts";
import { makeTestQuery } from "../../plugin/testing.ts";
import type { ReplyPort } from "../../transports/transport.ts";
import { InFlight } from "./in-flight.ts";
import { WaitingOrigin, WaitingQueries, type WaitingQuery, WaitingRoom } from "./waiting-queries.ts";

const query = makeTestQuery({ name: "a." });
const endpoint = new FixedEndpoint("192.0.2.1", 5, Uint8Array.of(192, 0, 2, 1));

function endsInto(given: WaitingQuery[]): WaitingOrigin {
  return new WaitingOrigin(query, new InFlight(), {
    givenUp: (waiting) => given.push(waiting),
    settled: () => assert.fail("nothing settles"),
  });
}

function port(client: FixedEndpoint = endpoint): ReplyPort {
  const self: ReplyPort = {
    client,
    local: endpoint,
    keep: () => self,
    buffer: (size) => new Uint8Array(size),
    send: () => undefined,
    drop: () => undefined,
  };
  return self;
}

test("past the bound the oldest goes", () => {
  const given: WaitingQuery[] = [];
  const queries = new WaitingQueries(3);
  const origin = endsInto(given);
  const [first, second, third, fourth] = Array.from({ length: 4 }, () => queries.add(query, port(), origin));
  assert.ok(first && second && third && fourth);
  assert.deepEqual(given, [first]);
  assert.equal(queries.remove(first), false);
  assert.equal(queries.remove(third), true);
  queries.add(query, port(), origin);
  assert.equal(given.length, 1);
  queries.add(query, port(), origin);
  assert.deepEqual(given, [first, second]);
});

function clientOf(last: number): FixedEndpoint {
  return new FixedEndpoint(`192.0.2.${last}`, 5, Uint8Array.of(192, 0, 2, last));
}

test("a client that floods loses its own queries, the oldest first, and not those of others", () => {
  const given: WaitingQuery[] = [];
  const queries = new WaitingQueries(80, undefined, 7);
  const origin = endsInto(given);
  const early = Array.from({ length: 5 }, () => queries.add(query, port(clientOf(1)), origin));
  const flood: WaitingQuery[] = [];
  const others: WaitingQuery[] = [];
  for (let round = 0; round < 1_000; round++) {
    flood.push(queries.add(query, port(clientOf(2)), origin));
    if (round % 200 === 0) others.push(queries.add(query, port(clientOf(3)), origin));
  }
  assert.equal(queries.size, 80);
  assert.ok([...early, ...others].every(({ waits }) => waits));
  assert.deepEqual(given, flood.slice(0, given.length));
  // Once the flood is over, the oldest goes again.
  for (const waiting of flood) queries.remove(waiting);
  given.length = 0;
  for (let client = 10; client < 90; client++) queries.add(query, port(clientOf(client)), origin);
  assert.deepEqual(given, [...early, ...others].slice(0, given.length));
});

test("where no client is above its share the oldest goes, and is not searched for each time", () => {
  const given: WaitingQuery[] = [];
  const queries = new WaitingQueries(1_000, undefined, 7);
  const origin = endsInto(given);
  let looks = 0;
  const added: WaitingQuery[] = [];
  for (let round = 0; round < 5_000; round++) {
    const client = clientOf(round % 100);
    const counting = {
      ...port(client),
      get client() {
        looks++;
        return client;
      },
    };
    added.push(queries.add(query, counting, origin));
  }
  assert.deepEqual(given, added.slice(0, 4_000));
  assert.ok(looks < 10 * added.length, `${looks}`);
});

test("listeners share a bound: where it is reached, the one with the most queries makes room", () => {
  const given: WaitingQuery[] = [];
  const origin = endsInto(given);
  const lists: WaitingQueries[] = [];
  const room = new WaitingRoom(() =>
    lists.map((list) => ({ waiting: list.size, giveUpOldest: () => list.giveUpOldest() })),
  );
  room.limit = 6;
  const flooded = new WaitingQueries(100, room);
  const quiet = new WaitingQueries(100, room);
  lists.push(flooded, quiet);
  const first = quiet.add(query, port(), origin);
  const flood = Array.from({ length: 20 }, () => flooded.add(query, port(), origin));
  assert.deepEqual([flooded.size, quiet.size, room.size], [5, 1, 6]);
  assert.deepEqual(given, flood.slice(0, 15));
  for (let count = 0; count < 20; count++) quiet.add(query, port(), origin);
  assert.equal(flooded.size + quiet.size, 6);
  assert.ok(flooded.size >= 2);
  room.limit = 3;
  const last = quiet.add(query, port(), origin);
  assert.equal(room.size, 3);
  assert.ok(last.waits && !first.waits);
  assert.equal(quiet.remove(last), true);
  assert.equal(room.size, 2);
});

test("any order of adding and removing leaves the bound and the order whole", () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.nat(20))), (steps) => {
      const given: WaitingQuery[] = [];
      const queries = new WaitingQueries(5);
      const origin = endsInto(given);
      const model: WaitingQuery[] = [];
      const all: WaitingQuery[] = [];
      for (const step of steps) {
        if (step === null) {
          if (model.length === 5) model.shift();
          const added = queries.add(query, port(), origin);
          model.push(added);
          all.push(added);
        } else {
          const chosen = all[step];
          if (chosen === undefined) continue;
          const place = model.indexOf(chosen);
          assert.equal(queries.remove(chosen), place >= 0);
          if (place >= 0) model.splice(place, 1);
        }
        assert.equal(queries.size, model.length);
        assert.ok(model.every((waiting) => waiting.waits));
      }
    }),
  );
});

test("a long query takes the places of many, and there is always room for one", () => {
  const long = makeTestQuery({ name: "a.", edns: { options: [{ code: 12, data: new Uint8Array(60_000) }] } });
  assert.ok(long.length > 60_000);
  const given: WaitingQuery[] = [];
  const origin = endsInto(given);
  const lists: WaitingQueries[] = [];
  const room = new WaitingRoom(() =>
    lists.map((list) => ({ waiting: list.size, giveUpOldest: () => list.giveUpOldest() })),
  );
  room.limit = 300;
  const queries = new WaitingQueries(1_000, room);
  lists.push(queries);
  const short = queries.add(query, port(), origin);
  const [first, second, third] = Array.from({ length: 3 }, () => queries.add(long, port(), origin));
  assert.ok(first && second && third);
  assert.deepEqual(given, [short, first]);
  assert.deepEqual([queries.size, room.size], [2 * 118, 2 * 118]);
  room.limit = 10;
  const last = queries.add(long, port(), origin);
  assert.deepEqual(given, [short, first, second, third]);
  assert.equal(queries.remove(last), true);
  assert.deepEqual([queries.size, room.size], [0, 0]);
});
