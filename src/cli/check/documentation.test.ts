import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { lintRules } from "../../lint/lint.ts";

test("docs/check.md names every warning, in the order of the rules", () => {
  const page = readFileSync(new URL("../../../docs/check.md", import.meta.url), "utf8");
  const named = Array.from(page.matchAll(/^\| `(LINT_\w+)` \|/gm), ([, code]) => code);
  assert.deepEqual(
    named,
    lintRules.map(({ code }) => code),
  );
});
