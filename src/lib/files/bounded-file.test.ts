import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { readBoundedFile, readTextFile, UnsuitableFile } from "./bounded-file.ts";

const folder = mkdtempSync(join(tmpdir(), "portolan-bounded-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string): string => join(folder, name);

async function problemOf(reading: Promise<unknown>): Promise<string> {
  const error = await reading.then(
    () => assert.fail("was read"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof UnsuitableFile, String(error));
  return error.message;
}

test("reads what lies in a file, to the last octet that it may have", async () => {
  writeFileSync(at("text"), "näher\n");
  assert.equal(await readTextFile(at("text")), "näher\n");
  assert.equal((await readBoundedFile(at("text"), 7)).length, 7);
  writeFileSync(at("empty"), "");
  assert.equal(await readTextFile(at("empty")), "");
  const large = Buffer.alloc(1_000_000, "portolan");
  writeFileSync(at("large"), large);
  assert.deepEqual(await readBoundedFile(at("large")), large);
});

test("reads no more than it may", async () => {
  assert.equal(
    await problemOf(readBoundedFile(at("text"), 6)),
    `${at("text")} is larger than ${6 / 1024 / 1024} MiB`,
  );
  writeFileSync(at("huge"), "");
  truncateSync(at("huge"), 3 * 1024 ** 3);
  assert.equal(await problemOf(readTextFile(at("huge"))), `${at("huge")} is larger than 16 MiB`);
});

test("counts what comes out of a file whose size is 0", { skip: process.platform !== "linux" }, async () => {
  assert.match(await readTextFile("/proc/self/status"), /^Name:/);
  assert.match(
    await problemOf(readBoundedFile("/proc/self/status", 10)),
    /^\/proc\/self\/status is larger than/,
  );
});

test("refuses folders, pipes and what is no text, and keeps the code of what is missing", async () => {
  mkdirSync(at("folder"));
  assert.equal(await problemOf(readTextFile(at("folder"))), `${at("folder")} is not a regular file`);
  if (process.platform !== "win32") {
    execFileSync("mkfifo", [at("pipe")]);
    assert.equal(await problemOf(readTextFile(at("pipe"))), `${at("pipe")} is not a regular file`);
  }
  writeFileSync(at("binary"), "a\0b");
  assert.equal(await problemOf(readTextFile(at("binary"))), `${at("binary")} is not a text file`);
  await assert.rejects(readTextFile(at("missing")), { code: "ENOENT" });
});
