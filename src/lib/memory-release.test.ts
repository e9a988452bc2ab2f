import assert from "node:assert/strict";
import { test } from "node:test";
import { loadMemoryRelease } from "./memory-release.ts";

for (const way of ["young", "unreachable", "all"] as const) {
  test(`${way} frees what nothing refers to, and leaves no way behind to do so`, async () => {
    const release = await loadMemoryRelease();
    const kept = new WeakRef(new Array(1000).fill("garbage"));
    // A reference is held until the turn in which it was made is over.
    await new Promise(setImmediate);
    release[way]();
    // Weak references are strong ones to a collection of young objects.
    if (way !== "young") assert.equal(kept.deref(), undefined);
    assert.equal("gc" in globalThis, false);
  });
}
