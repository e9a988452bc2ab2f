import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { getPriority } from "node:os";
import { test } from "node:test";
import { HELPER_NICENESS, helperThreads, holdBackHelpers } from "./helper-threads.ts";
import { NoForeignFunctions } from "./linux/libc.ts";
import { linuxSockets } from "./linux/linux-sockets.ts";

const skip = process.platform !== "linux" && "the threads of a process are known on Linux alone";

const SCHED_OTHER = 0;
const SCHED_BATCH = 3;

/** Field 41 of /proc/PID/stat (proc(5)); those behind the name in parentheses begin with the third. */
function policyOf(thread: number): number {
  const text = readFileSync(`/proc/self/task/${thread}/stat`, "latin1");
  return Number(text.slice(text.lastIndexOf(")") + 2).split(" ")[41 - 3]);
}

test("V8's helper threads yield to the others of the process", { skip }, async () => {
  const main = getPriority(process.pid);
  const helpers = helperThreads();
  assert.ok(helpers.length > 0, "V8 names them otherwise");
  assert.ok(!helpers.includes(process.pid));
  await holdBackHelpers();
  for (const helper of helpers) assert.equal(getPriority(helper), HELPER_NICENESS);
  if (!((await linuxSockets()) instanceof NoForeignFunctions))
    for (const helper of helpers) assert.equal(policyOf(helper), SCHED_BATCH);
  assert.equal(policyOf(process.pid), SCHED_OTHER);
  assert.equal(getPriority(process.pid), main);
});
