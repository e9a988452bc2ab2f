import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { sortInPortions } from "./portioned-sort.ts";

test("sorts like the sort of arrays, and keeps the order of equals", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: -50, max: 50 })), async (numbers) => {
      const tens = (one: number, other: number): number => Math.trunc(one / 10) - Math.trunc(other / 10);
      const sorted = await sortInPortions(Int32Array.from(numbers), tens);
      assert.deepEqual([...sorted], numbers.toSorted(tens));
    }),
  );
});

test("pauses once in a thousand comparisons", async () => {
  let pauses = 0;
  const numbers = Int32Array.from({ length: 4096 }, (_, index) => (index * 7919) % 4096);
  const sorted = await sortInPortions(
    numbers,
    (one, other) => one - other,
    async () => void pauses++,
  );
  assert.deepEqual(
    [...sorted],
    Array.from({ length: 4096 }, (_, index) => index),
  );
  // Twelve rounds over all of them.
  assert.equal(pauses, Math.floor((12 * 4096) / 1000));
});
