import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { BlockMemory, orderFor, REGION_UNITS, UNIT_OCTETS, UNIT_WORDS } from "./block-memory.ts";
import { SharedParts } from "./shared-parts.ts";

const LARGEST = 11;

function memory(regions: number): BlockMemory {
  const blocks = new BlockMemory(
    new SharedParts(new SharedArrayBuffer(BlockMemory.octetsFor(regions))),
    regions,
  );
  blocks.clear();
  return blocks;
}

for (const [octets, order] of [
  [1, 0],
  [64, 0],
  [65, 1],
  [128, 1],
  [129, 2],
  [65_536, 10],
  [65_537, 11],
] as const) {
  test(`${octets} octets need a block of order ${order}`, () => assert.equal(orderFor(octets), order));
}

test("memory is taken into use by the region, and at its end there is none", () => {
  const blocks = memory(2);
  assert.equal(blocks.octetsTouched, 0);
  assert.equal(blocks.allocate(LARGEST), 0);
  assert.equal(blocks.octetsTouched, 131_072);
  assert.equal(blocks.allocate(0), REGION_UNITS);
  assert.equal(blocks.allocate(LARGEST), -1);
  assert.equal(blocks.octetsInUse, 131_072 + 64);
  blocks.free(0);
  assert.equal(blocks.allocate(LARGEST), 0);
});

test("what is freed becomes whole again", () => {
  const blocks = memory(1);
  const units = Array.from({ length: REGION_UNITS }, () => blocks.allocate(0));
  assert.equal(new Set(units).size, REGION_UNITS);
  assert.equal(blocks.allocate(0), -1);
  for (const unit of units) blocks.free(unit);
  assert.equal(blocks.octetsInUse, 0);
  assert.equal(blocks.allocate(LARGEST), 0);
});

test("the hand goes round all blocks in use, and finds none where there is none", () => {
  const blocks = memory(2);
  assert.equal(blocks.nextBlock(), -1);
  const units = [3, 0, 5, LARGEST, 1].map((order) => blocks.allocate(order));
  const seen = Array.from({ length: 10 }, () => blocks.nextBlock());
  assert.deepEqual(seen.slice(0, 5), seen.slice(5));
  assert.deepEqual(new Set(seen), new Set(units));
  for (const unit of units) blocks.free(unit);
  assert.equal(blocks.nextBlock(), -1);
});

test("blocks lie at multiples of their size and never over each other, whatever comes and goes", () => {
  const step = fc.record({
    order: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: LARGEST })),
    frees: fc.boolean(),
    which: fc.nat(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const blocks = memory(3);
      const inUse: { unit: number; order: number }[] = [];
      let units = 0;
      for (const { order, frees, which } of steps) {
        if (frees && inUse.length > 0) {
          const [gone] = inUse.splice(which % inUse.length, 1);
          if (gone === undefined) continue;
          // Nobody else wrote into it.
          const { words } = blocks;
          for (const word of words.subarray(
            gone.unit * UNIT_WORDS,
            (gone.unit + 2 ** gone.order) * UNIT_WORDS,
          ))
            assert.equal(word, gone.unit + 1);
          blocks.free(gone.unit);
          units -= 2 ** gone.order;
        } else {
          const unit = blocks.allocate(order);
          if (unit < 0) continue;
          assert.equal(unit % 2 ** order, 0);
          assert.ok(blocks.isBlock(unit));
          assert.equal(blocks.orderOf(unit), order);
          blocks.words.fill(unit + 1, unit * UNIT_WORDS, (unit + 2 ** order) * UNIT_WORDS);
          inUse.push({ unit, order });
          units += 2 ** order;
        }
        assert.equal(blocks.octetsInUse, units * UNIT_OCTETS);
      }
      const found = new Set<number>();
      for (let unit = blocks.firstBlock(0, blocks.units); unit >= 0; ) {
        found.add(unit);
        unit = blocks.firstBlock(unit + 2 ** blocks.orderOf(unit), blocks.units);
      }
      assert.deepEqual(found, new Set(inUse.map(({ unit }) => unit)));
      for (const { unit } of inUse) blocks.free(unit);
      for (let region = 0; region < 3; region++) assert.ok(blocks.allocate(LARGEST) >= 0);
    }),
    { numRuns: 150 },
  );
});
