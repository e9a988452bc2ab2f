import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileFault } from "./file-fault.ts";

for (const [path, reason] of [
  ["/nowhere/at all, it's gone", "no such file or directory"],
  ["/", "illegal operation on a directory"],
] as const) {
  test(`reading ${path}: ${reason}`, () => {
    assert.throws(
      () => readFileSync(path),
      (error) => fileFault(error) === reason,
    );
  });
}

test("what is about no file is told as it is", () => {
  assert.equal(fileFault(new Error("E: what, ever")), "E: what, ever");
  assert.equal(fileFault("text"), "text");
});
