import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { capture } from "./captured-process.ts";
import { toolPath } from "./tool-path.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

test("tsc is the TypeScript of package.json, whichever npm linked last", async () => {
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const { code, output } = await capture(process.execPath, [toolPath(root, "tsc"), "--version"], {
    cwd: root,
    timeout: 60_000,
  });
  assert.deepEqual([code, output.trim()], [0, `Version ${manifest.devDependencies.typescript}`]);
  assert.ok(!toolPath(root, "tsc").includes(".bin"));
});

test("other tools are what npm linked", () => {
  assert.equal(toolPath("/project", "biome"), join("/project", "node_modules", ".bin", "biome"));
});
