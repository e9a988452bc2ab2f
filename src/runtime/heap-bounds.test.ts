import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { FakeClock } from "../lib/time/clock.ts";
import { heapBounds, holdReducer } from "./heap-bounds.ts";

/** Of the young generation, octets. */
const SIZE =
  'const size = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space").space_size;';
/** Much that passes by, and little that stays. @returns how large the young generation has become */
const WORK = `
  const held = [];
  const work = async () => {
    for (let turn = 0; turn < 300; turn++) {
      for (let each = 0; each < 5_000; each++) held[(turn * 5_000 + each) % 60_000] = { turn, each, text: [each] };
      await new Promise((resolve) => setImmediate(resolve));
    }
    return size();
  };`;

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
    ${SIZE}
    const before = size();
    let look;
    const clock = {
      every(_, callback) {
        look = callback;
        return { cancel: () => undefined };
      },
      after: () => ({ cancel: () => undefined }),
    };
    boundHeap({ young: 4 * before, growth: 50 }, clock);
    ${WORK}
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

test("the young generation grows to its bound and no further behind a list, where memory was given back before it", () => {
  const [bounds, release, thrift] = ["heap-bounds", "memory-release", "thrift"].map((name) =>
    JSON.stringify(new URL(`./${name}.ts`, import.meta.url).href),
  );
  const script = `
    import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
    const { boundHeap } = await import(${bounds});
    const { loadMemoryRelease } = await import(${release});
    const { Thrift } = await import(${thrift});
    setFlagsFromString("--semi-space-growth-factor=1");
    ${SIZE}
    let look;
    boundHeap({ young: 2 << 20, growth: 50 }, {
      every(_, callback) {
        look = callback;
      },
      after: () => undefined,
    });
    ${WORK}
    const grown = await work();
    held.length = 0;
    (await loadMemoryRelease()).all();
    const end = new Thrift({ clock: { after: () => ({ cancel: () => undefined }) } }).begin();
    const small = await work();
    end();
    let again = await work();
    // Once in a while V8 makes it smaller again in between: the look of the next second is for that.
    for (let more = 0; more < 3 && again <= small; more++) {
      look();
      again = await work();
    }
    console.log(JSON.stringify([grown, small, again]));
    process.exit();`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
    encoding: "utf8",
  });
  const [grown, small, again] = JSON.parse(stdout || `"${stderr}"`);
  const sizes = `${grown}, ${small}, ${again}`;
  assert.ok(small < grown && again > small, sizes);
  // As above, with one step more.
  assert.ok(Math.max(grown, again) <= 8 * 1024 * 1024, sizes);
});

test("V8 does not collect to save memory in the first minute", () => {
  const clock = new FakeClock();
  const flags: string[] = [];
  holdReducer(clock, (flag) => flags.push(flag));
  clock.advance(59_999);
  assert.deepEqual(flags, ["--memory-reducer-gc-count=0"]);
  clock.advance(1);
  assert.deepEqual(flags, ["--memory-reducer-gc-count=0", "--memory-reducer-gc-count=2"]);
  holdReducer(clock, (flag) => flags.push(flag)).cancel();
  clock.advance(60_000);
  assert.equal(flags.length, 3);
});

test("what was called once is not compiled anew after a few collections", () => {
  const url = new URL("./heap-bounds.ts", import.meta.url).href;
  const script = `
    import { setFlagsFromString } from "node:v8";
    import { runInNewContext } from "node:vm";
    const { boundHeap } = await import(${JSON.stringify(url)});
    setFlagsFromString("--expose-gc");
    setFlagsFromString("--allow-natives-syntax");
    const collect = runInNewContext("gc");
    const isCompiled = new Function("called", "return %ActiveTierIsIgnition(called)");
    const once = (numbers) => numbers.map((each) => each + 1);
    const collectOften = () => {
      once([1]);
      for (let time = 0; time < 16; time++) collect({ type: "major", execution: "sync", flavor: "last-resort" });
      return isCompiled(once);
    };
    const before = collectOften();
    boundHeap({ young: 2 << 20, growth: 25 }, { every: () => undefined, after: () => undefined });
    console.log(JSON.stringify([before, collectOften()]));
    process.exit();`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
    encoding: "utf8",
  });
  assert.equal(stdout.trim(), "[false,true]", stderr);
});

test("objects stay where they are, and what comes later lies between them", () => {
  const url = new URL("./heap-bounds.ts", import.meta.url).href;
  const release = new URL("./memory-release.ts", import.meta.url).href;
  const script = `
    import { getHeapSpaceStatistics } from "node:v8";
    const { boundHeap } = await import(${JSON.stringify(url)});
    const { loadMemoryRelease } = await import(${JSON.stringify(release)});
    const memory = await loadMemoryRelease();
    const size = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === "old_space").space_size;
    const make = (count) => Array.from({ length: count }, (_, each) => ({ each, text: [each] }));
    boundHeap({ young: 1 << 20, growth: 50 }, { every: () => undefined, after: () => undefined });
    // One object of eight stays.
    let held = make(400_000);
    memory.all();
    const full = size();
    held = held.filter((_, each) => each % 8 === 0);
    memory.all();
    const left = size();
    const later = make(300_000);
    memory.all();
    console.log(JSON.stringify([left / full, size() / full, held.length + later.length]));
    process.exit();`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
    encoding: "utf8",
  });
  const shares: readonly number[] = JSON.parse(stdout || `"${stderr}"`);
  const [left = 0, filled = 2] = shares;
  assert.ok(left > 0.6, `${shares}`);
  assert.ok(filled < 1.2, `${shares}`);
});
