import assert from "node:assert/strict";
import { constants, PerformanceObserver } from "node:perf_hooks";
import { test } from "node:test";
import { untilTrue } from "../../test/support/until-true.ts";
import { isWorthAnother, kindOf, loadMemoryRelease, loadPageRelease } from "./memory-release.ts";

for (const way of ["young", "allInTurns", "all"] as const) {
  test(`${way} frees what nothing refers to, and leaves no way behind to do so`, async () => {
    const release = await loadMemoryRelease();
    const kept = new WeakRef(new Array(1000).fill("garbage"));
    // A reference is held until the turn in which it was made is over.
    await new Promise(setImmediate);
    await release[way]();
    // Weak references are strong ones to a collection of young objects.
    if (way !== "young") assert.equal(kept.deref(), undefined);
    assert.equal("gc" in globalThis, false);
  });
}

test("collects once more where much was freed, or where V8 holds as much as before", () => {
  const before = { used: 16, total: 20 };
  assert.equal(isWorthAnother(before, { used: 15, total: 18 }), false);
  assert.equal(isWorthAnother(before, { used: 14, total: 18 }), true);
  assert.equal(isWorthAnother(before, { used: 15, total: 20 }), true);
});

test("young objects are collected while all of the heap is, without an end to that", async () => {
  const release = await loadMemoryRelease();
  const held = Array.from({ length: 200_000 }, (_, each) => ({ each, text: [each] }));
  const kinds: unknown[] = [];
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) kinds.push(kindOf(entry));
  });
  observer.observe({ entryTypes: ["gc"] });
  const { NODE_PERFORMANCE_GC_INCREMENTAL: BEGINNING, NODE_PERFORMANCE_GC_MINOR: YOUNG } = constants;
  const ended = release.allInTurns();
  await untilTrue(() => kinds.includes(BEGINNING), {
    between: async () => {
      await new Promise(setImmediate);
      release.young();
    },
  });
  await ended;
  observer.disconnect();
  assert.equal(kinds[kinds.indexOf(BEGINNING) + 1], YOUNG, `${kinds}`);
  assert.equal(held.length, 200_000);
});

test("pages of a buffer are given back at once, and its neighbours are left alone", async (context) => {
  const release = await loadPageRelease();
  if (release === undefined) {
    context.skip("no madvise here");
    return;
  }
  const buffer = new SharedArrayBuffer(64 << 20);
  const octets = new Uint8Array(buffer).fill(7);
  const before = process.memoryUsage.rss();
  release(octets.subarray(100_001, octets.length - 100_001));
  assert.ok(process.memoryUsage.rss() < before - (50 << 20));
  assert.equal(octets[100_000], 7);
  assert.equal(octets[1 << 20], 0);
  assert.equal(octets[octets.length - 100_001], 7);
  release(octets.subarray(0, 10));
  assert.equal(octets[5], 7);
});
