import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { HeavyHitters } from "./heavy-hitters.ts";

test("a key with more than its share of the notes has a place, and no count is too low", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(30), { maxLength: 300 }), (keys) => {
      const hitters = new HeavyHitters(8);
      const counts = new Map<number, number>();
      const owners = new Map<number, number>();
      for (const key of keys) {
        counts.set(key, (counts.get(key) ?? 0) + 1);
        const place = hitters.note(key, -key);
        assert.equal(hitters.isNew, owners.get(place) !== key);
        owners.set(place, key);
      }
      const shown = new Map(hitters.ranked().map((place) => [owners.get(place), hitters.count(place)]));
      for (const [key, count] of counts) {
        if (count > keys.length / 8) assert.ok(shown.has(key), `${key}`);
        assert.ok((shown.get(key) ?? count) >= count);
      }
      assert.deepEqual(
        [...shown.values()],
        [...shown.values()].sort((one, other) => other - one),
      );
    }),
  );
});

test("an empty one has no keys, also after a clear", () => {
  const hitters = new HeavyHitters(4);
  assert.deepEqual(hitters.ranked(), []);
  hitters.note(0, 0);
  assert.equal(hitters.ranked().length, 1);
  hitters.clear();
  assert.deepEqual(hitters.ranked(), []);
  hitters.note(0, 0);
  assert.ok(hitters.isNew);
});
