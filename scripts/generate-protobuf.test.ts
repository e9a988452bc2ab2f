import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

test("what is generated from .proto files is what they give", () => {
  const script = join(dirname(fileURLToPath(import.meta.url)), "generate-protobuf.ts");
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, "--check"], { encoding: "utf8" });
  assert.equal(status, 0, stdout + stderr);
});
