import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Outcome } from "./outcome.ts";
import { runTestProcess } from "./test-process.ts";
import { makeTree } from "./test-tree.ts";

const OPTIONS = { testTimeout: 10_000, timeout: 20_000, endingTime: 200 };
const HEAD =
  'import assert from "node:assert/strict";\nimport { after, before, describe, test } from "node:test";\n';
const PASSING = `${HEAD}test("passes", () => undefined);\n`;

function run(t: TestContext, sources: readonly string[], options: object = {}): Promise<Outcome> {
  const files = Object.fromEntries(sources.map((source, at) => [`${at}.test.ts`, source]));
  return runTestProcess(Object.keys(files), { cwd: makeTree(t, files), ...OPTIONS, ...options });
}

function counts({ passed, failed, skipped }: Outcome) {
  return { passed, failed, skipped };
}

test("takes the counts from the runner", async (t) => {
  const outcome = await run(t, [
    PASSING,
    `${HEAD}
    test("skipped", { skip: "not installed: dig" }, () => undefined);
    test("skips itself", (t) => t.skip("not installed: dig"));
    test("to do", { todo: "later" }, () => assert.equal(1, 2));
    describe("suite", () => { test("in a suite", () => undefined); });`,
  ]);
  assert.deepEqual(counts(outcome), { passed: 2, failed: 0, skipped: 3 });
  assert.equal(outcome.details, "");
  assert.deepEqual(outcome.skips, [
    { kind: "skipped", place: "1.test.ts:4", name: "skipped", reason: "not installed: dig" },
    { kind: "skipped", place: "1.test.ts:5", name: "skips itself", reason: "not installed: dig" },
  ]);
  assert.deepEqual(
    outcome.times.map(({ files }) => files),
    [["0.test.ts", "1.test.ts"]],
  );
});

test("shows a failure with its place, its suites and the difference", async (t) => {
  const source = `${HEAD}describe("parse", () => {\n  test("empty", () => {\n    assert.equal("one", "two");\n  });\n});\n`;
  const outcome = await run(t, [source, PASSING]);
  assert.deepEqual(counts(outcome), { passed: 1, failed: 1, skipped: 0 });
  assert.match(outcome.details, /^0\.test\.ts:4 {2}parse > empty\n/);
  assert.match(outcome.details, /'one' !== 'two'|\+ 'one'\n\s*- 'two'/);
  assert.match(outcome.details, /0\.test\.ts:5:12/);
  assert.doesNotMatch(outcome.details, /node:internal/);
});

test("counts a file that cannot be loaded as failed", async (t) => {
  const outcome = await run(t, ['throw new Error("no such thing");\n', PASSING]);
  assert.deepEqual(counts(outcome), { passed: 1, failed: 1, skipped: 0 });
  assert.match(outcome.details, /0\.test\.ts.*\n.*no such thing/);
});

test("counts what a failed hook kept from running as failed", async (t) => {
  const source = `${HEAD}describe("s", () => { before(() => { throw new Error("no port"); }); test("never", () => undefined); });`;
  const outcome = await run(t, [source]);
  assert.deepEqual(counts(outcome), { passed: 0, failed: 1, skipped: 0 });
  assert.match(outcome.details, /no port/);
});

test("counts a failed hook after passed tests as one failure", async (t) => {
  const source = `${HEAD}describe("s", () => { after(() => { throw new Error("late"); }); test("ok", () => undefined); });`;
  const outcome = await run(t, [source]);
  assert.deepEqual(counts(outcome), { passed: 1, failed: 1, skipped: 0 });
  assert.match(outcome.details, /late/);
});

test("counts an error after the end of its test as one failure", async (t) => {
  const source = `${HEAD}test("early", () => { setTimeout(() => { throw new Error("too late"); }, 20); });\n`;
  const outcome = await run(t, [source]);
  assert.deepEqual(counts(outcome), { passed: 1, failed: 1, skipped: 0 });
  assert.match(outcome.details, /too late/);
});

test("lets no test end the process", async (t) => {
  const outcome = await run(t, [`${HEAD}test("leaves", () => process.exit(0));\n`, PASSING]);
  assert.deepEqual(counts(outcome), { passed: 1, failed: 1, skipped: 0 });
  assert.match(outcome.details, /called process\.exit/);
});

test("counts a crash as failed, and shows what was printed", async (t) => {
  const source = `${HEAD}test("crashes", async () => {
    console.log("about to crash");
    await new Promise((resolve) => setTimeout(resolve, 50));
    process.kill(process.pid, "SIGKILL");
  });`;
  const outcome = await run(t, [PASSING, source]);
  assert.deepEqual(counts(outcome), { passed: 1, failed: 1, skipped: 0 });
  assert.match(outcome.details, /2 test files in one process: ended before the tests did \(SIGKILL\)/);
  assert.match(outcome.details, /about to crash/);
});

test("ends a process that a test left something open in", async (t) => {
  const source = `import { createServer } from "node:net";\n${HEAD}test("leaks", () => { createServer().listen(0); });\n`;
  const outcome = await run(t, [source]);
  assert.deepEqual(counts(outcome), { passed: 1, failed: 1, skipped: 0 });
  assert.match(outcome.details, /0\.test\.ts: does not end after the last test, .*TCPServerWrap/);
});

const CONNECTING = `import { once } from "node:events";
import { connect, createServer } from "node:net";
${HEAD}
async function connected(serve) {
  const server = createServer(serve).listen(0);
  await once(server, "listening");
  const socket = connect(server.address().port);
  server.unref();
  return socket;
}
`;

test("names the opener of a connection whose error nothing listens to", async (t) => {
  const source = `${CONNECTING}test("leaves", async () => void (await connected((socket) => socket.resetAndDestroy())));\n`;
  const outcome = await run(t, [source]);
  assert.equal(outcome.failed, 1);
  assert.match(outcome.details, /connection opened at 0\.test\.ts:9, without an error listener/);
});

test("fails where a connection has no error listener, even if nothing goes wrong", async (t) => {
  const source = `${CONNECTING}test("closes", async () => {
    const socket = await connected((socket) => socket.once("data", () => socket.end()).resume());
    await once(socket, "connect");
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    socket.resume().end("done");
    await once(socket, "close");
  });\n`;
  const outcome = await run(t, [source]);
  assert.deepEqual(counts(outcome), { passed: 1, failed: 1, skipped: 0 });
  assert.match(outcome.details, /need a listener for "error"[^\n]*\n {2}connection opened at 0\.test\.ts:9/);
});

test("names the opener of a child that is still there after the last test", async (t) => {
  const source = `import { spawn } from "node:child_process";\n${HEAD}test("leaks", () => { spawn("sleep", ["60"]); });\n`;
  const outcome = await run(t, [source]);
  assert.deepEqual(counts(outcome), { passed: 1, failed: 1, skipped: 0 });
  assert.match(outcome.details, /does not end after the last test, .*child process opened at 0\.test\.ts:4/);
});

test("kills a process that takes too long, with its children", async (t) => {
  const source = `import { spawn } from "node:child_process";\n${HEAD}test("hangs", () => {
    spawn("sleep", ["60"], { stdio: "inherit" });
    for (;;);
  });`;
  const outcome = await run(t, [source], { timeout: 500 });
  assert.deepEqual(counts(outcome), { passed: 0, failed: 1, skipped: 0 });
  assert.match(outcome.details, /0\.test\.ts: took too long and was killed/);
});

test("counts a test that takes too long as failed", async (t) => {
  const source = `${HEAD}test("waits", () => new Promise((resolve) => setTimeout(resolve, 2000)));\n`;
  const outcome = await run(t, [source, PASSING], { testTimeout: 100, endingTime: 5000 });
  assert.deepEqual(counts(outcome), { passed: 1, failed: 1, skipped: 0 });
  assert.match(outcome.details, /timed out after 100ms/);
});

test("runs only tests of a name", async (t) => {
  const source = `${HEAD}test("one", () => undefined);\ntest("two", () => assert.fail());\n`;
  assert.deepEqual(counts(await run(t, [source], { name: "one" })), { passed: 1, failed: 0, skipped: 0 });
});
