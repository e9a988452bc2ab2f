import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { changedFiles, touchedTests } from "./touched-tests.ts";

const SOURCES = new Map([
  ["src/dns/name.ts", ""],
  ["src/dns/name.test.ts", 'import { n } from "./name.ts";'],
  ["src/plugins/cache/handler.ts", 'import { n } from "../../dns/name.ts";'],
  ["src/plugins/cache/handler.test.ts", 'import { h } from "./handler.ts";'],
  ["src/plugins/hosts/handler.test.ts", ""],
  ["test/plugins/cached.test.ts", "const corefile = `. {\n cache 30\n }`;"],
  ["test/plugins/node-cache.test.ts", 'const args = ["node-cache"];'],
  ["test/plugins/hosts.test.ts", "const corefile = `hosts FILE`;"],
  ["test/project/pages.test.ts", 'readFileSync("docs/plugins.md")'],
  ["test/support/zone.ts", ""],
  ["test/zones/zone.test.ts", 'import { z } from "../support/zone.ts";'],
]);
const touched = (...changed: string[]) => [...touchedTests(changed, SOURCES)];

describe("a change touches", () => {
  test("a test that changed, and tests that import a changed file through others", () => {
    assert.deepEqual(touched("src/plugins/hosts/handler.test.ts"), ["src/plugins/hosts/handler.test.ts"]);
    assert.deepEqual(touched("test/support/zone.ts"), ["test/zones/zone.test.ts"]);
  });

  test("black-box tests that name the plugin", () => {
    assert.deepEqual(touched("src/plugins/cache/handler.ts"), [
      "src/plugins/cache/handler.test.ts",
      "test/plugins/cached.test.ts",
    ]);
    assert.deepEqual(touched("src/plugins/hosts/gone.ts"), ["test/plugins/hosts.test.ts"]);
  });

  test("all black-box tests where any part of the program may have changed", () => {
    assert.deepEqual(
      touched("src/dns/name.ts"),
      [...SOURCES.keys()].filter((path) => path.endsWith(".test.ts") && !path.includes("hosts/handler")),
    );
  });

  test("tests that name a changed page", () => {
    assert.deepEqual(touched("docs/plugins.md"), ["test/project/pages.test.ts"]);
    assert.deepEqual(touched("docs/unnamed.md"), []);
  });
});

test("changed files are those that differ from a commit, and new ones", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "portolan-changed-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.test", ...args], { cwd: root });
  git("init", "-q");
  for (const name of ["a.ts", "b.ts", "gone.ts"]) writeFileSync(join(root, name), "1");
  git("add", ".");
  git("commit", "-qm", "first");
  writeFileSync(join(root, "b.ts"), "2");
  writeFileSync(join(root, "näher c.ts"), "3");
  rmSync(join(root, "gone.ts"));
  assert.deepEqual(await changedFiles(root, "HEAD"), ["b.ts", "gone.ts", "näher c.ts"]);
  await assert.rejects(changedFiles(root, "no-such-branch"), /no-such-branch/);
});
