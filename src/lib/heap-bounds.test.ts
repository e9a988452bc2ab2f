import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { heapBounds } from "./heap-bounds.ts";

test("little memory has the collector work more often", () => {
  assert.deepEqual(heapBounds(170 * 1024 * 1024), { young: 2_097_152, growth: 20 });
  assert.deepEqual(heapBounds(), { young: 2_097_152, growth: 25 });
});

test("the young generation grows to its bound and no further, whatever passes by, and again after memory was given back", () => {
  const url = new URL("./heap-bounds.ts", import.meta.url).href;
  const release = new URL("./memory-release.ts", import.meta.url).href;
  const script = `
    import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
    const { boundHeap } = await import(${JSON.stringify(url)});
    setFlagsFromString("--semi-space-growth-factor=1");
    const { loadMemoryRelease } = await import(${JSON.stringify(release)});
    const size = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space").space_size;
    const before = size();
    let look;
    const clock = {
      every(_, callback) {
        look = callback;
        return { cancel: () => undefined };
      },
    };
    boundHeap({ young: 4 * before, growth: 50 }, clock);
    const held = [];
    const work = async () => {
      for (let turn = 0; turn < 200; turn++) {
        for (let each = 0; each < 5_000; each++) held[(turn * 5_000 + each) % 60_000] = { turn, each, text: [each] };
        await new Promise((resolve) => setImmediate(resolve));
      }
      return size();
    };
    const grown = await work();
    held.length = 0;
    (await loadMemoryRelease()).all();
    const small = size();
    look();
    console.log(JSON.stringify([before, grown, small, await work()]));`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
    encoding: "utf8",
  });
  const [before, grown, small, again] = JSON.parse(stdout || `"${stderr}"`);
  const sizes = `${before} to ${grown}, ${small} to ${again}`;
  assert.ok(grown > before && again > small, sizes);
  // Two halves, and one step more: what may happen before the watch hears of the first.
  assert.ok(Math.max(grown, again) <= 16 * before, sizes);
  assert.ok(small <= 2 * before, sizes);
});
