import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { seededRandom } from "./random.ts";
import { ZipfDistribution } from "./zipf.ts";

describe("Zipf", () => {
  test("shares follow the law and add up to one", () => {
    const zipf = new ZipfDistribution(1000);
    for (const rank of [1, 9, 99, 999])
      assert.ok(Math.abs(zipf.share(0) / zipf.share(rank) - (rank + 1)) < 1e-6, `rank ${rank}`);
    const sum = Array.from({ length: 1000 }, (_, rank) => zipf.share(rank)).reduce(
      (one, other) => one + other,
    );
    assert.ok(Math.abs(sum - 1) < 1e-9);
  });

  test("an exponent of 0 makes all ranks equal", () => {
    const zipf = new ZipfDistribution(4, 0);
    assert.deepEqual(
      [0, 0.24, 0.26, 0.5, 0.99].map((fraction) => zipf.rank(fraction)),
      [0, 0, 1, 2, 3],
    );
  });

  test("draws come as often as their shares say", () => {
    const zipf = new ZipfDistribution(100);
    const random = seededRandom(7);
    const draws = 200_000;
    const counts = new Array<number>(100).fill(0);
    for (let n = 0; n < draws; n++) {
      const rank = zipf.rank(random());
      counts[rank] = (counts[rank] ?? 0) + 1;
    }
    for (const rank of [0, 1, 10, 50, 99]) {
      const expected = zipf.share(rank) * draws;
      const deviation = Math.abs((counts[rank] ?? 0) - expected) / Math.sqrt(expected);
      assert.ok(deviation < 5, `rank ${rank}: ${counts[rank]} instead of ${expected}`);
    }
  });

  test("the ends of the range are ranks too", () => {
    const zipf = new ZipfDistribution(3);
    assert.equal(zipf.rank(0), 0);
    assert.equal(zipf.rank(1 - Number.EPSILON), 2);
    assert.equal(new ZipfDistribution(1).rank(0.5), 0);
    assert.throws(() => new ZipfDistribution(0), RangeError);
  });
});

describe("seeded random numbers", () => {
  test("one seed gives one series, another seed another one", () => {
    const series = (seed: number) => {
      const random = seededRandom(seed);
      return Array.from({ length: 5 }, random);
    };
    assert.deepEqual(series(3), series(3));
    assert.notDeepEqual(series(3), series(4));
    assert.throws(() => seededRandom(0), RangeError);
    assert.throws(() => seededRandom(2 ** 32), RangeError);
  });

  test("they lie in the range and spread over it evenly", () => {
    const random = seededRandom(11);
    const tenths = new Array<number>(10).fill(0);
    for (let n = 0; n < 100_000; n++) {
      const number = random();
      assert.ok(number >= 0 && number < 1);
      const tenth = Math.floor(number * 10);
      tenths[tenth] = (tenths[tenth] ?? 0) + 1;
    }
    for (const count of tenths) assert.ok(Math.abs(count - 10_000) < 500, `${tenths}`);
  });
});
