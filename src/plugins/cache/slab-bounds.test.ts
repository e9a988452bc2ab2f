import assert from "node:assert/strict";
import { test } from "node:test";
import { REGION_OCTETS } from "../../lib/collections/slab/block-memory.ts";
import { PluginTest } from "../../plugin/testing.ts";
import cache from "./index.ts";
import { settingsOf, unmetWishes } from "./settings.ts";
import { cacheBounds, effectiveCapacity, memoryWithin, smallestMemory } from "./slab-bounds.ts";
import { slabOctets } from "./slab-shape.ts";

const MIB = 1024 * 1024;
const USUAL = effectiveCapacity();
const LIMIT = 170 * MIB;

for (const [success, denial, asked, limit, expected] of [
  [USUAL, USUAL, undefined, undefined, undefined],
  [USUAL, USUAL, undefined, LIMIT, undefined],
  [USUAL, USUAL, 64 * MIB, undefined, 64 * MIB],
  [USUAL, USUAL, 64 * MIB, LIMIT, 64 * MIB],
  // Four fifths of it were taken once the cache was full, and the system ended the process.
  [1_000_000, USUAL, 400 * MIB, LIMIT, LIMIT / 2],
  [1_000_000, USUAL, undefined, LIMIT, LIMIT / 4],
] as const)
  test(`of ${limit} octets, caches of ${success} and ${denial} get ${expected} where ${asked} are asked for`, () =>
    assert.equal(memoryWithin(success, denial, asked, limit), expected));

for (const [success, denial, mebibytes] of [
  [500_000, 500_000, 42],
  [1_000_000, 10_000, 58],
  [10_000, 1_000_000, 42],
  [16_777_216, 16_777_216, 42],
  [10_000, 10_000, 2],
] as const)
  test(`tables for ${success} and ${denial} leave most of ${mebibytes} MiB to answers`, () => {
    const memory = mebibytes * MIB;
    const asked = [effectiveCapacity(success), effectiveCapacity(denial)] as const;
    const bounds = cacheBounds(...asked, memory);
    assert.ok(slabOctets(bounds.success) + slabOctets(bounds.denial) <= memory);
    const forAnswers = (bounds.success.regions + bounds.denial.regions) * REGION_OCTETS;
    assert.ok(forAnswers > 0.4 * memory, `${forAnswers}`);
    // As many as requested, or as possible.
    const entries = bounds.success.capacity + bounds.denial.capacity;
    assert.ok(entries === asked[0] + asked[1] || entries * 256 > forAnswers, `${entries}`);
  });

test("with enough room tables have the requested size", () => {
  const { success, denial } = cacheBounds(1_000_000, USUAL, 400 * MIB);
  assert.deepEqual([success.capacity, denial.capacity], [1_000_000, USUAL]);
});

test("tables never shrink below the minimum", () => {
  const { success, denial } = cacheBounds(1 << 24, 1 << 24, smallestMemory(1024, 1024));
  assert.deepEqual([success, denial], [{ capacity: 1024, regions: 1 }, denial]);
});

function wishesOf(text: string, limit?: number): string[] {
  const [config] = PluginTest.of(cache, text).configs;
  assert.ok(config !== undefined);
  return unmetWishes(config, settingsOf(config, limit), limit);
}

test("a warning names what the memory limit does not allow", () => {
  assert.deepEqual(wishesOf("cache {\n memory 400Mi\n}", LIMIT), [
    "memory 400Mi is more than half of the memory limit of 170Mi: the cache takes 85Mi",
  ]);
  const [wish, ...more] = wishesOf("cache {\n success 500000\n}", LIMIT);
  assert.match(
    wish ?? "",
    /^43520Ki is too small for 499968 successes and 9984 denials: it has room for \d{6} and 9984$/,
  );
  assert.deepEqual(more, []);
});

for (const [text, limit] of [
  ["cache", LIMIT],
  ["cache {\n success 500000\n}", undefined],
  ["cache {\n memory 85Mi\n}", LIMIT],
  ["cache {\n success 1000000\n memory 400Mi\n}", undefined],
] as const)
  test(`nothing is said of ${JSON.stringify(text)} where ${limit ?? "any"} octets may be taken`, () =>
    assert.deepEqual(wishesOf(text, limit), []));

test("more memory than the caches can use gets a warning", () => {
  const warnings = (text: string) => PluginTest.of(cache, text).warnings.join("\n");
  assert.match(
    warnings("cache {\n memory 999999G\n}"),
    /3:2: warning: memory is more than caches of these capacities can use[\s\S]*expected \d+Ki or less/,
  );
  assert.equal(warnings("cache {\n success 1000000\n memory 4Gi\n}"), "");
});
