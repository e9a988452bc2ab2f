import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { describe, it } from "node:test";
import { IdTable } from "./id-table.ts";

const draw = (): number => randomInt(2 ** 32);

describe("id table", () => {
  it("gives no id twice, and each back to who has it", () => {
    const table = new IdTable<number>(0x8000);
    const ids = new Map<number, number>();
    for (let value = 0; value < 0x8000; value++) ids.set(table.claim(value, draw(), draw), value);
    assert.equal(ids.size, 0x8000);
    assert.ok(table.isFull);
    for (const [id, value] of ids) assert.equal(table.get(id), value);
    assert.throws(() => table.claim(1, 1, draw), RangeError);
  });

  it("takes an id back, once", () => {
    const table = new IdTable<string>(2);
    const one = table.claim("one", 5, draw);
    assert.equal(one, 5);
    table.release(one);
    table.release(one);
    assert.equal(table.size, 0);
    assert.equal(table.get(one), undefined);
    assert.equal(table.claim("two", 5, draw), 5);
    const other = table.claim("three", 6, draw);
    assert.equal(table.get(5), "two");
    assert.equal(table.get(other), "three");
    assert.deepEqual(
      table.select((value) => value.startsWith("t")),
      ["two", "three"],
    );
  });

  it("finds a free id even where chance always says the same", () => {
    const table = new IdTable<number>(100);
    const ids = Array.from({ length: 100 }, (_, value) => table.claim(value, 0x1_2345, () => 0x2345));
    assert.equal(new Set(ids).size, 100);
  });

  it("begins with the lower 16 bits", () => {
    assert.equal(new IdTable<number>(1).claim(0, 0xabcd_1234, draw), 0x1234);
  });

  it("has a sensible bound", () => {
    assert.throws(() => new IdTable(0), RangeError);
    assert.throws(() => new IdTable(0x8001), RangeError);
  });
});
