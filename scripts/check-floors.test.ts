import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { makeTree } from "./lib/test-tree.ts";

function check(root: string) {
  const script = join(import.meta.dirname, "check-floors.ts");
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, root], { encoding: "utf8" });
  return { status, stdout, stderr };
}

test("passes a tree that keeps the rules", (t) => {
  const root = makeTree(t, {
    "src/lib/a.ts": "export const a = 1;\n",
    "src/dns/b.ts": 'import { a } from "../lib/a.ts";\nexport const b = a;\n',
    "src/dns/fixtures/broken.ts": "export default 1;\n",
  });
  assert.deepEqual(check(root), { status: 0, stdout: "", stderr: "" });
});

test("names each place that breaks a rule, and ends with 1", (t) => {
  const root = makeTree(t, {
    "src/lib/a.ts": '\nimport { b } from "../dns/b.ts";\nexport default b;\n',
    "src/dns/b.ts": "export const b = 1;\n",
    "src/plugins/x/index.ts": "export default 1;\n",
  });
  const { status, stdout } = check(root);
  assert.equal(status, 1);
  assert.deepEqual(stdout.trimEnd().split("\n"), [
    "src/plugins/x: has not README.md",
    "src/plugins/x: has not a test",
    "src/lib/a.ts:2: imports ../dns/b.ts: dns is above lib",
    "src/lib/a.ts:3: has a default export: only the index.ts of a plugin has one",
  ]);
});

test("names each circle of imports, also outside of src/", (t) => {
  const root = makeTree(t, {
    "src/lib/a.ts": 'import type { b } from "./b.ts";\nexport const a = 1;\n',
    "src/lib/b.ts": 'import { a } from "./a.ts";\nexport const b = a;\n',
    "test/support/c.ts": 'import { d } from "./d.ts";\nexport const c = d;\n',
    "test/support/d.ts": 'import { c } from "./c.ts";\nexport const d = c;\n',
  });
  const { status, stdout } = check(root);
  assert.equal(status, 1);
  assert.deepEqual(stdout.trimEnd().split("\n"), [
    "circle of imports: src/lib/a.ts, src/lib/b.ts",
    "circle of imports: test/support/c.ts, test/support/d.ts",
  ]);
});

test("does not pass where there is nothing to check", (t) => {
  const { status, stderr } = check(makeTree(t, { "src/README.md": "" }));
  assert.equal(status, 1);
  assert.match(stderr, /no TypeScript in/);
});
