import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { describe, it } from "node:test";
import { IdTable } from "./id-table.ts";

const draw = (): number => randomInt(2 ** 32);

describe("id table", () => {
  it("never issues an id twice, and finds the value of each", () => {
    const table = new IdTable<number>(0x8000);
    const ids = new Map<number, number>();
    for (let value = 0; value < 0x8000; value++) ids.set(table.claim(value, draw(), draw, 0), value);
    assert.equal(ids.size, 0x8000);
    assert.ok(table.isFull);
    for (const [id, value] of ids) assert.equal(table.get(id), value);
    assert.throws(() => table.claim(1, 1, draw, 0), RangeError);
  });

  it("takes an id back, once", () => {
    const table = new IdTable<string>(2);
    const one = table.claim("one", 5, draw, 0);
    assert.equal(one, 5);
    table.release(one, 0);
    table.release(one, 0);
    assert.equal(table.size, 0);
    assert.equal(table.get(one), undefined);
    assert.equal(table.claim("two", 5, draw, 0), 5);
    const other = table.claim("three", 6, draw, 0);
    assert.equal(table.get(5), "two");
    assert.equal(table.get(other), "three");
    assert.deepEqual(
      table.select((value) => value.startsWith("t")),
      ["two", "three"],
    );
  });

  it("finds a free id even if the random source repeats itself", () => {
    const table = new IdTable<number>(100);
    const ids = Array.from({ length: 100 }, (_, value) => table.claim(value, 0x1_2345, () => 0x2345, 0));
    assert.equal(new Set(ids).size, 100);
  });

  it("starts with the lower 16 bits", () => {
    assert.equal(new IdTable<number>(1).claim(0, 0xabcd_1234, draw, 0), 0x1234);
  });

  it("lets an id rest as long as a late answer may come, and then reuses it", () => {
    const table = new IdTable<string>(2);
    const id = table.claim("one", 5, draw, 1_000);
    table.release(id, 3_000);
    assert.equal(table.get(id), undefined);
    assert.notEqual(
      table.claim("two", 5, () => 6, 2_999),
      5,
    );
    assert.equal(table.claim("three", 5, draw, 3_000), 5);
  });

  it("reuses resting ids early, the oldest first, when very many rest", () => {
    const table = new IdTable<number>(1);
    const drawn = (id: number): number => table.claim(0, id, () => id, 0);
    for (let id = 0; id <= 16_384; id++) {
      assert.equal(drawn(id), id);
      table.release(id, 60_000);
    }
    assert.equal(drawn(0), 0);
    table.release(0, 60_000);
    assert.notEqual(drawn(16_000), 16_000);
  });

  it("rests across the wrap of the clock's 32 bits", () => {
    const table = new IdTable<number>(2);
    const now = 2 ** 32 - 500;
    table.release(table.claim(0, 5, draw, now), now + 1_000);
    assert.notEqual(
      table.claim(0, 5, () => 6, now + 999),
      5,
    );
    assert.equal(table.claim(0, 5, draw, now + 1_000), 5);
  });

  it("has a sensible limit", () => {
    assert.throws(() => new IdTable(0), RangeError);
    assert.throws(() => new IdTable(0x8001), RangeError);
  });
});
