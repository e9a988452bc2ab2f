import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { makeTree } from "./lib/test-tree.ts";

function check(root: string) {
  const script = join(import.meta.dirname, "check-references.ts");
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, root], { encoding: "utf8" });
  return { status, lines: stdout.split("\n").filter((line) => line !== ""), stderr };
}

test("passes references that lead somewhere", (t) => {
  const root = makeTree(t, {
    "docs/spec/names.md": '# Names\n\n## Names of pods\n\n1. <a id="letter-case"></a>Case does not count.\n',
    "docs/index.md":
      "[case](spec/names.md#letter-case), [pods](spec/names.md#names-of-pods), [here](#contents)\n\n# Contents\n",
    "src/a.ts":
      "/** Names (docs/spec/names.md#letter-case). */\nexport const a = 'docs/nothing.md';\n// See src/lib.\n",
    "src/lib/b.ts": "export const b = 1;\n",
    "README.md": "`src/a.ts`\n\n```sh\ncat docs/nothing.md\n```\n",
    "changes/a.md": "[names](docs/spec/names.md)\n",
  });
  assert.deepEqual(check(root), { status: 0, lines: [], stderr: "" });
});

test("names each path and anchor that does not exist, and ends with 1", (t) => {
  const root = makeTree(t, {
    "docs/names.md": "# Names\n\n[none](gone.md), [wrong](names.md#gone), [own](#lost)\n",
    "src/a.ts": "/** See docs/names.md#gone. */\nexport const a = 1; // as in src/gone.ts\n",
  });
  assert.deepEqual(check(root), {
    status: 1,
    lines: [
      "docs/names.md:3: docs/gone.md does not exist",
      "docs/names.md:3: docs/names.md has no anchor gone",
      "docs/names.md:3: docs/names.md has no anchor lost",
      "src/a.ts:1: docs/names.md has no anchor gone",
      "src/a.ts:2: src/gone.ts does not exist",
    ],
    stderr: "",
  });
});

test("refuses numbers of documents that are not here, in comments and in titles of tests", (t) => {
  const root = makeTree(t, {
    "src/a.ts": [
      "// As CoreDNS has it (CoreDNS facts 2.35).",
      "// kube-dns facts 2.1",
      "// a name (rule 21)",
      "// kubernetes-dns-spec part 3",
      "",
    ].join("\n"),
    "src/a.test.ts":
      'it("answers (rule 7)", () => {});\nit(`rule 8: answers`, () => {});\nit("keeps the rules", () => {});\n',
  });
  const { status, lines } = check(root);
  assert.equal(status, 1);
  assert.deepEqual(
    lines.map((line) => line.replace(/: .*/, "")),
    ["src/a.test.ts:1", "src/a.test.ts:2", "src/a.ts:1", "src/a.ts:2", "src/a.ts:3", "src/a.ts:4"],
  );
});

test("does not pass where there is nothing to check", (t) => {
  const { status, stderr } = check(makeTree(t, { LICENSE: "" }));
  assert.equal(status, 1);
  assert.match(stderr, /nothing to check in/);
});
