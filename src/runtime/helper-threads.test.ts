import assert from "node:assert/strict";
import { getPriority } from "node:os";
import { test } from "node:test";
import { HELPER_NICENESS, helperThreads, holdBackHelpers } from "./helper-threads.ts";

const skip = process.platform !== "linux" && "the threads of a process are known on Linux alone";

test("V8's helper threads yield to the others of the process", { skip }, () => {
  const main = getPriority(process.pid);
  const helpers = helperThreads();
  assert.ok(helpers.length > 0, "V8 names them otherwise");
  assert.ok(!helpers.includes(process.pid));
  holdBackHelpers();
  for (const helper of helpers) assert.equal(getPriority(helper), HELPER_NICENESS);
  assert.equal(getPriority(process.pid), main);
});
