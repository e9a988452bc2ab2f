/** The output of commands cannot be written: the reader has gone away, as `head` does, or the disk is full. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { portolanWords } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

const WRONG = ".:53 {\n    nonsense\n}\n";
/** Far more than a pipe holds. */
const ZONE = "@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.1\n$GENERATE 1-20000 h$ 60 A 192.0.2.1\n";
const DENIED = Array.from({ length: 100 }, (_, at) =>
  JSON.stringify({
    ...{
      time: at,
      name: "no.where.example.",
      type: "A",
      rcode: "NXDOMAIN",
      client: "10.1.0.1",
      plugin: "cache",
    },
    ...{ duration: 1, weight: 1, port: 1, id: at, answers: 0 },
  }),
).join("\n");

/** Runs the program with such a standard output. */
async function runInto(
  output: "closed" | number,
  args: readonly string[],
  cwd: string,
  meanwhile: (child: ChildProcess) => Promise<void> = async () => undefined,
): Promise<{ readonly code: unknown; readonly signal: unknown; readonly errors: string }> {
  const [node = "", ...words] = portolanWords(...args);
  const child = spawn(node, words, { cwd, stdio: ["ignore", output === "closed" ? "pipe" : output, "pipe"] });
  // The read end is closed before the program has loaded its first module.
  child.stdout?.destroy();
  let errors = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const ended = once(child, "close");
  await meanwhile(child);
  const [code, signal] = await ended;
  return { code, signal, errors };
}

describe("a reader that has gone away ends no command, and is not worth a word", { concurrency: 3 }, () => {
  for (const [args, expected] of [
    [["-help"], 0],
    [["-version"], 0],
    [["-plugins"], 0],
    [["help"], 0],
    [["help", "cache"], 0],
    [["completion", "bash"], 0],
    [["check", "wrong"], 1],
    [["doctor", "capture"], 1],
    [["doctor", "capture", "-format", "json"], 1],
    [["explain", "example.org", "-conf", "Corefile"], 0],
    [["zone", "print", "db.example.org"], 0],
    [["zone", "diff", "db.example.org", "db.example.org"], 0],
  ] as const)
    test(`portolan ${args.join(" ")}`, async (t) => {
      const cwd = makeTree(t, {
        wrong: WRONG,
        capture: DENIED,
        "db.example.org": ZONE,
        Corefile: ".:53 {\n    whoami\n}\n",
      });
      assert.deepEqual(await runInto("closed", args, cwd), { code: expected, signal: null, errors: "" });
    });
});

const FULL = "/dev/full";
test("a disk that is full is told", { skip: existsSync(FULL) ? false : `needs ${FULL}` }, async (t) => {
  for (const args of [
    ["-help"],
    ["check", "Corefile"],
    ["doctor", "capture"],
    ["zone", "print", "db.example.org"],
  ]) {
    const cwd = makeTree(t, { capture: DENIED, Corefile: WRONG, "db.example.org": ZONE });
    const { code, errors } = await runInto(openSync(FULL, "w"), args, cwd);
    assert.equal(code, 2);
    assert.match(errors, /^cannot write the output: ENOSPC/);
  }
});

describe("a server goes on where its log cannot be written, and ends as it would", { concurrency: 2 }, () => {
  const SERVES = ".:0 {\n    bind 127.0.0.1\n    log\n    whoami\n}\n";
  for (const [title, output] of [
    ["the reader has gone away", () => "closed" as const],
    ["the disk is full", () => openSync(FULL, "w")],
  ] as const) {
    const skip = title === "the disk is full" && !existsSync(FULL) ? `needs ${FULL}` : false;
    test(`${title}: SIGTERM`, { skip }, async (t) => {
      const cwd = makeTree(t, { Corefile: SERVES });
      const args = ["-pidfile", "pid"];
      const ended = runInto(output(), args, cwd, async (child) => {
        await untilTrue(() => existsSync(join(cwd, "pid")), { what: "the file with the process ID" });
        child.kill("SIGTERM");
      });
      assert.deepEqual(await ended, { code: 0, signal: null, errors: "" });
    });

    test(`${title}: what keeps it from starting is told`, { skip }, async (t) => {
      // The option without effect is a warning in the log.
      const cwd = makeTree(t, {
        Corefile: ".:0 {\n    bind 192.0.2.1\n    erratic {\n        drop 1\n        drop 2\n    }\n}\n",
      });
      const { code, errors } = await runInto(output(), [], cwd);
      assert.equal(code, 1);
      assert.match(errors, /^cannot listen on \S+ 192\.0\.2\.1/);
      assert.doesNotMatch(errors, /EPIPE|ENOSPC/);
    });
  }
});
