import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { faultOfFile } from "./readable-file.ts";

test("reports the fault of a file", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "portolan-files-"));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const [name, text] of [
    ["text", "ä text\n"],
    ["binary", "ab\0c"],
    ["empty", ""],
    ["huge", ""],
  ] as const)
    writeFileSync(join(folder, name), text);
  mkdirSync(join(folder, "folder"));
  truncateSync(join(folder, "huge"), 2 * 1024 * 1024 + 1);
  for (const [file, reason] of [
    ["text", undefined],
    ["empty", undefined],
    ["binary", "is not a text file"],
    ["huge", "larger than 2 MiB"],
    ["folder", "is a directory"],
    ["missing", "no such file"],
    ["text/below", "no such file"],
    ["/dev/null", "is not a file"],
  ] as const) {
    const path = file.startsWith("/") ? file : join(folder, file);
    assert.equal(faultOfFile(path, { maxMebibytes: 2 }), reason, file);
  }
  assert.equal(faultOfFile(join(folder, "folder"), { maxMebibytes: 2, orFolder: true }), undefined);
});
