import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { heapBounds } from "./heap-bounds.ts";

test("little memory has the collector work more often", () => {
  assert.deepEqual(heapBounds(170 * 1024 * 1024), { young: 8_388_608, growth: 20 });
  assert.deepEqual(heapBounds(), { young: 8_388_608, growth: 25 });
});

test("the young generation grows to its bound and no further, whatever passes by", () => {
  const url = new URL("./heap-bounds.ts", import.meta.url).href;
  const script = `
    import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
    const { boundHeap } = await import(${JSON.stringify(url)});
    setFlagsFromString("--semi-space-growth-factor=1");
    const size = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space").space_size;
    const before = size();
    boundHeap({ young: 4 * before, growth: 50 });
    const held = [];
    for (let turn = 0; turn < 200; turn++) {
      for (let each = 0; each < 5_000; each++) held[(turn * 5_000 + each) % 60_000] = { turn, each, text: [each] };
      await new Promise((resolve) => setImmediate(resolve));
    }
    console.log(JSON.stringify([before, size()]));`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
    encoding: "utf8",
  });
  const [before, after] = JSON.parse(stdout || `"${stderr}"`);
  assert.ok(after > before, `${before} to ${after}`);
  // One step more is what may happen before the watch hears of the first.
  assert.ok(after <= 16 * before, `${before} to ${after}`);
});
