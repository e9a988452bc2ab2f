import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

test("nothing is left to load when the parts were loaded in turns", () => {
  const url = new URL("./undici-parts.ts", import.meta.url).href;
  // In a process of its own: others have loaded them already.
  const script = `
    import { createRequire } from "node:module";
    const { loadUndiciInTurns, loadUndiciParts } = await import(${JSON.stringify(url)});
    const { cache } = createRequire(${JSON.stringify(url)});
    const files = () => Object.keys(cache).length;
    const counts = [];
    const count = () => {
      if (counts.push(files()) < 100) setImmediate(count);
    };
    setImmediate(count);
    await loadUndiciInTurns();
    const all = files();
    loadUndiciParts();
    console.log(JSON.stringify({ counts: counts.filter((each) => each <= all), all, after: files() }));
    process.exit();`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
    encoding: "utf8",
  });
  const { counts, all, after } = JSON.parse(stdout || `"${stderr}"`);
  // Some in each of several turns.
  assert.ok(all > 20 && new Set(counts).size >= 5, `${counts} ${all}`);
  assert.equal(after, all);
});
