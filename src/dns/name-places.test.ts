import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { NamePlaces } from "./name-places.ts";

describe("NamePlaces", () => {
  it("finds what was added and not dropped", () => {
    // Few low bits, so that chains are long.
    const hash = fc.integer({ min: -64, max: 64 }).map((value) => value * 0x1_0001);
    const step = fc.oneof(
      { weight: 8, arbitrary: fc.record({ hash, gap: fc.integer({ min: 1, max: 60 }) }) },
      { weight: 1, arbitrary: fc.record({ drop: fc.integer({ min: 0, max: 1_000 }) }) },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const places = new NamePlaces();
        const model = new Map<number, number>();
        let at = 0;
        for (const one of steps) {
          if ("drop" in one) {
            places.dropFrom(one.drop);
            for (const [key, place] of model) if (place >= one.drop) model.delete(key);
            at = Math.min(at, one.drop);
          } else if (!model.has(one.hash)) {
            at += one.gap;
            places.add(one.hash, at);
            model.set(one.hash, at);
          }
          for (const key of [0, ...model.keys()]) assert.equal(places.find(key), model.get(key) ?? -1);
        }
      }),
      { numRuns: 50 },
    );
  });
});
