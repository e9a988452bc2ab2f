/** What commands print goes nowhere: to a reader that has gone away, as `head` does, or to a disk that is full. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, openSync } from "node:fs";
import { describe, test } from "node:test";
import { makeTree } from "../scripts/lib/test-tree.ts";
import { portolanWords } from "./support/portolan.ts";

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
): Promise<{ readonly code: unknown; readonly signal: unknown; readonly errors: string }> {
  const [node = "", ...words] = portolanWords(...args);
  const child = spawn(node, words, { cwd, stdio: ["ignore", output === "closed" ? "pipe" : output, "pipe"] });
  // Nobody holds the end to read from before the program has loaded its first module.
  child.stdout?.destroy();
  let errors = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const [code, signal] = await once(child, "close");
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
    assert.match(errors, /^cannot write what is to be printed: ENOSPC/);
  }
});
