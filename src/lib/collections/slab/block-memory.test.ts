import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { BlockMemory, LEAST_UNITS, REGION_UNITS, UNIT_OCTETS, UNIT_WORDS, unitsFor } from "./block-memory.ts";
import { SharedParts } from "./shared-parts.ts";

function memory(regions: number): BlockMemory {
  const blocks = new BlockMemory(
    new SharedParts(new SharedArrayBuffer(BlockMemory.octetsFor(regions))),
    regions,
  );
  blocks.clear(true);
  return blocks;
}

for (const [octets, units] of [
  [1, 2],
  [64, 2],
  [65, 3],
  [156, 5],
  [160, 5],
  [161, 6],
  [65_536, 2048],
] as const) {
  test(`${octets} octets need ${units} units`, () => assert.equal(unitsFor(octets), units));
}

test("memory is taken into use by region, until all regions are in use", () => {
  const blocks = memory(2);
  assert.equal(blocks.octetsTouched, 0);
  assert.equal(blocks.allocate(REGION_UNITS), 0);
  assert.equal(blocks.octetsTouched, 131_072);
  assert.equal(blocks.allocate(2), REGION_UNITS);
  assert.equal(blocks.allocate(REGION_UNITS), -1);
  assert.equal(blocks.allocate(REGION_UNITS - 1), -1);
  assert.equal(blocks.octetsInUse, 131_072 + 64);
  blocks.free(0);
  assert.equal(blocks.allocate(REGION_UNITS), 0);
  assert.equal(blocks.allocate(REGION_UNITS - 2), REGION_UNITS + 2);
  assert.equal(blocks.octetsInUse, blocks.octetsTouched);
});

test("what is freed becomes whole again", () => {
  const blocks = memory(1);
  const units = Array.from({ length: REGION_UNITS / LEAST_UNITS }, () => blocks.allocate(LEAST_UNITS));
  assert.equal(new Set(units).size, REGION_UNITS / LEAST_UNITS);
  assert.equal(blocks.allocate(LEAST_UNITS), -1);
  for (const unit of units) blocks.free(unit);
  assert.equal(blocks.octetsInUse, 0);
  assert.equal(blocks.allocate(REGION_UNITS), 0);
});

test("blocks lie side by side, whatever their length, and nothing is lost between them", () => {
  const blocks = memory(1);
  let taken = 0;
  for (let length = 2; blocks.allocate(length) >= 0; length = 2 + ((length * 5) % 61)) taken += length;
  assert.ok(taken > REGION_UNITS - 63, `${taken}`);
  assert.equal(blocks.octetsInUse, taken * UNIT_OCTETS);
});

test("a hole is found again for what is as long as it, and for what is shorter", () => {
  const blocks = memory(1);
  const units = Array.from({ length: 4 }, () => blocks.allocate(REGION_UNITS / 4));
  const [, second, , fourth] = units;
  assert.ok(second !== undefined && fourth !== undefined);
  blocks.free(second);
  blocks.free(fourth);
  // Longer than all that begins in its list.
  assert.equal(blocks.allocate(1023), fourth);
  assert.equal(blocks.allocate(1024), second);
  assert.equal(blocks.allocate(2), -1);
  assert.equal(blocks.lengthOf(fourth), 1023);
});

test("the hand goes round all blocks in use, and finds nothing in empty memory", () => {
  const blocks = memory(2);
  assert.equal(blocks.nextBlock(), -1);
  const units = [8, 2, 32, REGION_UNITS, 3].map((length) => blocks.allocate(length));
  const seen = Array.from({ length: 10 }, () => blocks.nextBlock());
  assert.deepEqual(seen.slice(0, 5), seen.slice(5));
  assert.deepEqual(new Set(seen), new Set(units));
  for (const unit of units) blocks.free(unit);
  assert.equal(blocks.nextBlock(), -1);
});

test("blocks never lie over each other or in two regions, whatever comes and goes", () => {
  const step = fc.record({
    length: fc.oneof(
      fc.integer({ min: 2, max: 8 }),
      fc.integer({ min: 2, max: 150 }),
      fc.integer({ min: 2, max: REGION_UNITS }),
    ),
    frees: fc.boolean(),
    which: fc.nat(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const blocks = memory(3);
      const inUse = new Map<number, number>();
      const free = (unit: number): void => {
        // No other block overlaps it.
        const end = (unit + (inUse.get(unit) ?? assert.fail())) * UNIT_WORDS;
        for (const word of blocks.words.subarray(unit * UNIT_WORDS, end)) assert.equal(word, unit + 1);
        blocks.free(unit);
        inUse.delete(unit);
      };
      for (const { length, frees, which } of steps) {
        if (frees && inUse.size > 0) free([...inUse.keys()][which % inUse.size] ?? assert.fail());
        else {
          const unit = blocks.allocate(length);
          if (unit < 0) continue;
          assert.ok((unit % REGION_UNITS) + length <= REGION_UNITS);
          assert.ok(blocks.isBlock(unit));
          assert.equal(blocks.lengthOf(unit), length);
          blocks.words.fill(unit + 1, unit * UNIT_WORDS, (unit + length) * UNIT_WORDS);
          inUse.set(unit, length);
        }
      }
      checkMap(blocks, inUse);
      for (const unit of [...inUse.keys()]) free(unit);
      assert.equal(blocks.octetsInUse, 0);
      for (let region = 0; region < 3; region++) assert.ok(blocks.allocate(REGION_UNITS) >= 0);
    }),
    { numRuns: 150 },
  );
});

/** All memory is blocks side by side, no two free ones are neighbours, and those in use are known. */
function checkMap(blocks: BlockMemory, inUse: ReadonlyMap<number, number>): void {
  const end = blocks.unitsTouched;
  const found = new Map<number, number>();
  let freeFrom = -1;
  for (let unit = 0; unit < end; unit += blocks.lengthOf(unit)) {
    const length = blocks.lengthOf(unit);
    if (unit % REGION_UNITS === 0) freeFrom = -1;
    assert.equal(blocks.runStart(unit), freeFrom < 0 ? unit : freeFrom);
    if (blocks.isBlock(unit)) {
      found.set(unit, length);
      freeFrom = -1;
    } else {
      assert.equal(freeFrom, -1, "two free ones side by side");
      freeFrom = unit;
    }
  }
  assert.deepEqual(found, new Map([...inUse].sort(([one], [other]) => one - other)));
  const units = [...inUse.values()].reduce((sum, length) => sum + length, 0);
  assert.equal(blocks.octetsInUse, units * UNIT_OCTETS);
  assert.equal(blocks.firstBlock(0, end), inUse.size === 0 ? -1 : Math.min(...inUse.keys()));
}
