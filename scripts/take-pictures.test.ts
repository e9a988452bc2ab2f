import assert from "node:assert/strict";
import { globSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { run } from "../test/support/program.ts";
import { skipWithout } from "./lib/system-tools.mjs";
import { terminalPicture } from "./lib/terminal-picture.ts";
import { makeTree } from "./lib/test-tree.ts";

const root = join(import.meta.dirname, "..");

test("the README shows pictures that are there", () => {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const shown = [...readme.matchAll(/docs\/pictures\/[\w-]+\.\w+/g)].map(([path]) => path);
  const kept = globSync("docs/pictures/*", { cwd: root });
  assert.deepEqual([...new Set(shown)].sort(), kept.sort());
  for (const path of kept) assert.ok(statSync(join(root, path)).size <= 160_000, path);
});

test("the script takes them out of a server that runs", { skip: skipWithout("chromium") }, async (t) => {
  const folder = makeTree(t, {});
  const { code, errors } = await run(process.execPath, [
    ...[join(root, "scripts", "take-pictures.ts"), "--seconds", "0", folder],
  ]);
  assert.equal(code, 0, errors);
  assert.deepEqual(globSync("*", { cwd: folder }).sort(), [
    "console-dark.png",
    "console-light.png",
    "explain.svg",
  ]);
  assert.match(
    readFileSync(join(folder, "explain.svg"), "utf8"),
    /there is no Service chekcout .* is checkout meant\?<\/text>/,
  );
});

test("what a terminal shows is text in the picture, whatever is in it", () => {
  const picture = terminalPicture('a "b"', ["$ a <b>", "  & c"]);
  assert.match(picture, /aria-label="a &quot;b&quot;"/);
  assert.match(picture, /class="command">\$ a &lt;b&gt;<\/text>/);
  assert.match(picture, /> {2}&amp; c<\/text>/);
});
