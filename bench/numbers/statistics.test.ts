import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { median, percentile, spreadOf } from "./statistics.ts";

describe("median and spread", () => {
  test("an odd number of values has one in the middle, an even number two", () => {
    assert.deepEqual(spreadOf([3, 1, 2]), { median: 2, min: 1, max: 3 });
    assert.deepEqual(spreadOf([4, 1, 3, 2]), { median: 2.5, min: 1, max: 4 });
    assert.deepEqual(spreadOf([5]), { median: 5, min: 5, max: 5 });
  });

  test("values are compared as numbers, and left in their order", () => {
    const values = [100, 20, 3];
    assert.equal(median(values), 20);
    assert.deepEqual(values, [100, 20, 3]);
  });

  test("without values there is nothing to say", () => {
    assert.equal(spreadOf([]), undefined);
    assert.throws(() => median([]), RangeError);
  });
});

describe("percentiles", () => {
  const hundred = Float64Array.from({ length: 100 }, (_, index) => index + 1);

  test("are values that occurred", () => {
    assert.equal(percentile(hundred, 0.5), 50);
    assert.equal(percentile(hundred, 0.99), 99);
    assert.equal(percentile(hundred, 0.999), 100);
    assert.equal(percentile(hundred, 1), 100);
    assert.equal(percentile(hundred, 0), 1);
  });

  test("of one value are that value, of none an error", () => {
    assert.equal(percentile(Float64Array.of(7), 0.99), 7);
    assert.throws(() => percentile(new Float64Array(0), 0.5), RangeError);
  });
});
