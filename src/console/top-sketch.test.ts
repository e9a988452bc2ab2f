import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { leastOf, TopSketch } from "./top-sketch.ts";

/** Keys of which few are frequent. */
const stream = fc.array(
  fc.tuple(
    fc.oneof({ weight: 3, arbitrary: fc.nat(8) }, { weight: 1, arbitrary: fc.nat(60) }),
    fc.integer({ min: 1, max: 9 }),
  ),
  { maxLength: 400 },
);

// Small tables are looked through, others have an index.
for (const capacity of [8, 20])
  describe(`the most frequent of a stream, at most ${capacity}`, () => {
    test("no count is too small, none is too large by more than it says, and the table never grows", () => {
      fc.assert(
        fc.property(stream, (keys) => {
          const sketch = new TopSketch(capacity);
          const truth = new Map<string, number>();
          for (const [number, weight] of keys) {
            const key = String(number);
            truth.set(key, (truth.get(key) ?? 0) + weight);
            sketch.add(key, weight);
            assert.ok(sketch.size <= capacity);
          }
          for (const { key, count, error } of sketch.top(capacity)) {
            const exact = truth.get(key) ?? 0;
            assert.ok(count >= exact && count - error <= exact, `${key}: ${count} - ${error} for ${exact}`);
            assert.ok(error <= sketch.total / capacity);
          }
        }),
      );
    });

    test("what is more frequent than one in its capacity is always there", () => {
      fc.assert(
        fc.property(stream, (keys) => {
          const sketch = new TopSketch(capacity);
          const truth = new Map<string, number>();
          for (const [number, weight] of keys) {
            truth.set(String(number), (truth.get(String(number)) ?? 0) + weight);
            sketch.add(String(number), weight);
          }
          const kept = new Set(sketch.top(capacity).map(({ key }) => key));
          for (const [key, count] of truth) assert.ok(count <= sketch.total / capacity || kept.has(key), key);
        }),
      );
    });

    test("what came with a key is kept with it, and goes with it", () => {
      const sketch = new TopSketch(2, 2);
      for (const inner of ["x", "y", "x"]) sketch.add("a", 1).inner?.add(inner, 1);
      sketch.add("b", 1);
      sketch.add("c", 1);
      assert.deepEqual(
        sketch.top(2).map(({ key, count, error }) => [key, count, error]),
        [
          ["a", 3, 0],
          ["c", 2, 1],
        ],
      );
      assert.deepEqual(
        sketch
          .top(1)[0]
          ?.inner?.top(2)
          .map(({ key, count }) => [key, count]),
        [
          ["x", 2],
          ["y", 1],
        ],
      );
      assert.equal(sketch.top(2)[1]?.inner?.size, 0);
    });

    test("of keys that are all rare none is known, and one that is frequent among them is", () => {
      const sketch = new TopSketch(capacity);
      for (let n = 0; n < 1_000; n++) sketch.add(`random-${n}`, 1);
      assert.deepEqual(sketch.known(capacity), []);
      for (let n = 0; n < 4_000; n++) sketch.add(n % 2 === 0 ? "frequent" : `more-${n}`, 1);
      assert.deepEqual(
        sketch.known(capacity).map((entry) => [entry.key, leastOf(entry)]),
        [["frequent", 2_000]],
      );
    });

    test("what is known is no more than what was", () => {
      fc.assert(
        fc.property(stream, (keys) => {
          const sketch = new TopSketch(capacity);
          const truth = new Map<string, number>();
          for (const [number, weight] of keys) {
            truth.set(String(number), (truth.get(String(number)) ?? 0) + weight);
            sketch.add(String(number), weight);
          }
          const known = sketch.known(capacity);
          for (const [at, entry] of known.entries()) {
            const exact = truth.get(entry.key) ?? 0;
            assert.ok(leastOf(entry) <= exact && exact <= leastOf(entry) + entry.error);
            assert.ok(at === 0 || leastOf(entry) <= leastOf(known[at - 1] ?? entry));
          }
        }),
      );
    });

    test("whatever grew or faded, the rarest goes", () => {
      fc.assert(
        fc.property(stream, fc.nat(300), (keys, fadesAt) => {
          const sketch = new TopSketch(capacity);
          for (const [at, [number, weight]] of keys.entries()) {
            if (at === fadesAt) sketch.fade();
            const before = sketch.top(capacity);
            const { key, error } = sketch.add(String(number), weight);
            if (before.some((entry) => entry.key === key)) continue;
            assert.equal(error, before.length < capacity ? 0 : before.at(-1)?.count);
          }
        }),
      );
    });

    test("fades by the half, until it is gone", () => {
      const sketch = new TopSketch(capacity);
      sketch.add("a", 4);
      sketch.add("b", 1);
      sketch.fade();
      assert.deepEqual(
        [sketch.top(2).map(({ key, count }) => [key, count]), sketch.total],
        [
          [
            ["a", 2],
            ["b", 0.5],
          ],
          2.5,
        ],
      );
      for (let count = 0; count < 3; count++) sketch.fade();
      assert.equal(sketch.size, 0);
    });
  });
