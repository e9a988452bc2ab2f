import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { HashIndex } from "./hash-index.ts";
import { SharedParts } from "./shared-parts.ts";

function valuesOf(index: HashIndex, hash: number): number[] {
  const values: number[] = [];
  for (let at = index.first(hash); index.pairs[at + 1] !== 0; at = index.next(at))
    if (index.pairs[at] === hash) values.push((index.pairs[at + 1] ?? 0) - 1);
  return values.sort((one, other) => one - other);
}

test("finds what was added and not removed, whatever meets at one place", () => {
  const capacity = 24;
  // Few hashes, some at the end of the table, so that searches go round it.
  const hash = fc.constantFrom(0, 1, 2, 63, 62, 61, -1, -2, 64, 127, 0x7fff_ffff);
  fc.assert(
    fc.property(fc.array(fc.tuple(hash, fc.boolean()), { maxLength: 200 }), (steps) => {
      const index = new HashIndex(
        new SharedParts(new SharedArrayBuffer(HashIndex.octetsFor(capacity))),
        capacity,
      );
      const model: { hash: number; value: number }[] = [];
      for (const [value, [hash, adds]] of steps.entries()) {
        if (adds && model.length < capacity) {
          index.add(hash, value);
          model.push({ hash, value });
        } else {
          const at = model.findIndex((entry) => entry.hash === hash);
          const [gone] = at < 0 ? [] : model.splice(at, 1);
          if (gone !== undefined) index.remove(gone.hash, gone.value);
          // What is not there is left alone.
          index.remove(hash, 1000);
        }
        for (const one of new Set(steps.map(([known]) => known)))
          assert.deepEqual(
            valuesOf(index, one),
            model.filter((entry) => entry.hash === one).map((entry) => entry.value),
          );
      }
    }),
    { numRuns: 200 },
  );
});
