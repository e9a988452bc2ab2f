import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { makeTree } from "./lib/test-tree.ts";

const HEAD = 'import assert from "node:assert/strict";\nimport { test } from "node:test";\n';
const PASSING = `${HEAD}test("passes", () => assert.ok(true));\n`;
const FAILING = `${HEAD}test("fails", () => assert.ok(false));\n`;
const SKIPPED = `${HEAD}test("skipped", { skip: "not installed: dig" }, () => assert.ok(false));\n`;

function makeProject(t: TestContext, files: Readonly<Record<string, string>>): string {
  const root = makeTree(t, files);
  symlinkSync(join(import.meta.dirname, "..", "node_modules"), join(root, "node_modules"));
  return root;
}

function run(root: string, ...args: string[]) {
  const script = join(import.meta.dirname, "run-tests.ts");
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [script, "--root", root, "--skips", "any", ...args],
    {
      encoding: "utf8",
      cwd: root,
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  const lines = stdout.trimEnd().split("\n");
  return { status, stdout, stderr, lines, summary: lines.at(-1) };
}

test("adds up all steps, and prints the sum once and last", (t) => {
  const root = makeProject(t, {
    "src/lib/a.test.ts": PASSING,
    "src/lib/b.test.ts": SKIPPED,
    "scripts/c.test.ts": PASSING,
  });
  const { status, stdout, summary, lines } = run(root, "--only", "tests,floors");
  assert.equal(summary, "3 passed, 0 failed, 1 skipped");
  assert.equal(stdout.match(/^\d+ passed, \d+ failed, \d+ skipped$/gm)?.length, 1);
  assert.equal(status, 0);
  const labels = lines.slice(0, 5).map((line) => line.replace(/\s+\d+\.\d s/, ""));
  assert.deepEqual(labels, [
    "ok    floors",
    "ok    unit  1 passed, 0 failed, 1 skipped",
    "ok    scripts  1 passed, 0 failed, 0 skipped",
    "ok    program  no test files",
    "ok    plain  no test files",
  ]);
  assert.equal(lines[5], "Skipped 1: not installed: dig");
});

test("fails where a test is skipped for a reason that is not listed", (t) => {
  const files = { "src/lib/a.test.ts": PASSING, "src/lib/b.test.ts": SKIPPED };
  const unlisted = makeProject(t, files);
  const { status, stdout, summary } = run(unlisted, "--only", "unit", "--skips", "listed");
  assert.deepEqual([status, summary], [1, "1 passed, 1 failed, 1 skipped"]);
  assert.match(
    stdout,
    /FAIL: test\/expected-skips\.json does not list[^\n]*\n +src\/lib\/b\.test\.ts:3 {2}skipped\n/,
  );
  assert.equal(run(unlisted, "--only", "unit", "--skips", "any").status, 0);
  const list = JSON.stringify([{ reason: "not installed: (dig|kdig)", why: "for this test" }]);
  const listed = makeProject(t, { ...files, "test/expected-skips.json": list });
  assert.equal(run(listed, "--only", "unit", "--skips", "listed").status, 0);
});

test("shows how long each process of tests took", (t) => {
  const root = makeProject(t, { "scripts/a.test.ts": PASSING, "scripts/b.test.ts": PASSING });
  const { stdout } = run(root, "--only", "scripts", "--times");
  assert.deepEqual(
    stdout
      .match(/^ +\d+\.\d s {2}\S+$/gm)
      ?.map((line) => line.slice(11))
      .sort(),
    ["scripts/a.test.ts", "scripts/b.test.ts"],
  );
});

test("fails when a test fails, and runs the steps after it", (t) => {
  const root = makeProject(t, { "src/lib/a.test.ts": FAILING, "scripts/c.test.ts": PASSING });
  const { status, stdout, summary } = run(root, "--only", "unit", "--only", "scripts");
  assert.deepEqual([status, summary], [1, "1 passed, 1 failed, 0 skipped"]);
  assert.match(
    stdout,
    /^FAIL {2}unit .* 0 passed, 1 failed, 0 skipped\n {6}src\/lib\/a\.test\.ts:3 {2}fails\n/m,
  );
});

test("fails when a check fails, and shows what it said", (t) => {
  const root = makeProject(t, { "src/lib/a.ts": "export default 1;\n" });
  const { status, stdout, summary } = run(root, "--only", "floors");
  assert.deepEqual([status, summary], [1, "0 passed, 1 failed, 0 skipped"]);
  assert.match(stdout, /^FAIL {2}floors .*\n {6}src\/lib\/a\.ts:1: has a default export/m);
});

test("runs the project's formatter, linters and compiler", (t) => {
  const configuration = {
    "biome.json": '{ "files": { "includes": ["src/**"] } }\n',
    "tsconfig.json": '{ "compilerOptions": { "noEmit": true, "strict": true }, "include": ["src"] }',
    ".oxlintrc.json":
      '{ "plugins": ["typescript"], "categories": { "correctness": "error" }, "ignorePatterns": ["node_modules"] }',
    "package.json": '{ "type": "module" }\n',
    "src/console/page/tsconfig.json":
      '{ "compilerOptions": { "noEmit": true, "strict": true }, "include": ["."] }\n',
  };
  const good = makeProject(t, {
    ...configuration,
    "src/lib/a.ts": "export const a = 1;\n",
    "src/console/page/app.ts": "export const page = 1;\n",
  });
  assert.equal(run(good, "--only", "static").summary, "9 passed, 0 failed, 0 skipped");
  const bad = makeProject(t, {
    ...configuration,
    "src/lib/a.ts":
      "export  const a: number = 'a'\ndebugger;\nasync function f() {}\nf();\nprocess.exit();\nprocess.binding('uv'); // for who\n",
    "src/console/page/app.ts": "export const page: number = 'a';\n",
  });
  const { status, summary, stdout } = run(bad, "--only", "static");
  assert.deepEqual([status, summary], [1, "1 passed, 8 failed, 0 skipped"]);
  for (const cause of ["noDebugger", "no-floating-promises", "TS2322", "src/lib/a.ts:5: ends the process"]) {
    assert.ok(stdout.includes(cause), `${cause} is not in ${stdout}`);
  }
});

test("fails when no test ran", (t) => {
  const root = makeProject(t, { "src/lib/a.ts": "export const a = 1;\n", "src/lib/b.test.ts": SKIPPED });
  const { status, stdout, summary } = run(root, "--only", "floors,unit");
  assert.deepEqual([status, summary], [1, "1 passed, 0 failed, 1 skipped"]);
  assert.match(stdout, /^No test ran\.$/m);
  assert.deepEqual(run(root, "--only", "floors").status, 0);
});

test("runs the files that are asked for", (t) => {
  const root = makeProject(t, {
    "src/dns/a.test.ts": PASSING,
    "src/dns/deep/b.test.ts": PASSING,
    "src/lib/c.test.ts": FAILING,
    "src/lib/fixtures/d.test.ts": FAILING,
  });
  assert.equal(run(root, "--files", "src/dns").summary, "2 passed, 0 failed, 0 skipped");
  assert.equal(run(root, "--files", "src/dns/*.test.ts").summary, "1 passed, 0 failed, 0 skipped");
  assert.equal(run(root, "--files", "./src/dns/a.test.ts").summary, "1 passed, 0 failed, 0 skipped");
  assert.equal(run(root, "--files", "src/**", "--name", "passes").summary, "2 passed, 0 failed, 0 skipped");
  assert.deepEqual([run(root, "--files", "src/nowhere").status], [1]);
});

test("runs unit tests in few processes, and counts each once", (t) => {
  const pid = `${HEAD}import { appendFileSync } from "node:fs";
test("passes", () => appendFileSync("pids", \`\${process.pid}\\n\`));
`;
  const names = Array.from({ length: 60 }, (_, index) => `src/lib/t${index}.test.ts`);
  const root = makeProject(t, Object.fromEntries(names.map((name) => [name, pid])));
  assert.equal(run(root, "--only", "unit").summary, "60 passed, 0 failed, 0 skipped");
  const pids = readFileSync(join(root, "pids"), "utf8").trimEnd().split("\n");
  assert.deepEqual([pids.length, new Set(pids).size], [60, 4]);
});

test("names its steps when it is asked for another", (t) => {
  const { status, stderr } = run(makeProject(t, {}), "--only", "everything");
  assert.equal(status, 2);
  assert.match(stderr, /^No such step: everything\n[\s\S]*\n {2}floors /);
});
