/** `docs/compatibility.md` says what the code and the READMEs say. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { currentPage, PAGE } from "../../scripts/lib/differences.ts";
import { projectRoot } from "../support/portolan.ts";

const page = readFileSync(join(projectRoot, PAGE), "utf8");

test("has the differences of all READMEs (else run: npx node scripts/write-differences.ts)", () => {
  assert.equal(page, currentPage(projectRoot));
});
