import assert from "node:assert/strict";
import { test } from "node:test";
import { hashName } from "../../src/dns/name.ts";
import { COLLIDING_BITS, collidingNames, FLOODS, type FloodKind, floodQueries } from "./flood-queries.ts";

function take<T>(values: Iterator<T>, count: number): T[] {
  return Array.from({ length: count }, () => values.next().value);
}

test("colliding names have the last bits of the plain hash in common, and are different names", () => {
  const names = take(collidingNames(7), 50);
  const last = names.map(({ wire }) => hashName(wire, 0, wire.length) & (2 ** COLLIDING_BITS - 1));
  assert.deepEqual(new Set(last), new Set([0]));
  assert.equal(new Set(names.map(String)).size, names.length);
});

test("the longest names have 255 octets", () => {
  // Header, type and class are 16 octets.
  for (const query of take(floodQueries("longest names", 1), 5)) assert.equal(query.length, 16 + 255);
});

for (const kind of FLOODS)
  test(`${kind}: no two queries are the same, in floods of different seeds neither`, () => {
    const question = (query: Uint8Array): string => Buffer.from(query.subarray(2)).toString("hex");
    const all = [1, 2].flatMap((seed) =>
      take(floodQueries(kind satisfies FloodKind, seed), 100).map(question),
    );
    assert.ok(new Set(all).size >= 190, `${new Set(all).size} of 200`);
  });
