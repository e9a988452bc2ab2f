import assert from "node:assert/strict";
import { test } from "node:test";
import { StepFailure } from "../lib/step.mjs";
import { sectionOf } from "./release.ts";

const CHANGELOG = `# Changelog

## 0.10.0

Later.

## 0.1.0 (unreleased)

The first version.

### Added

- All.

## 0.0.1
`;

test("the notes of a release are the section of its version", () => {
  assert.equal(sectionOf(CHANGELOG, "0.1.0"), "The first version.\n\n### Added\n\n- All.");
  assert.equal(sectionOf(CHANGELOG, "0.10.0"), "Later.");
});

for (const [version, why] of [
  ["0.2.0", "the changelog has no section"],
  ["0.1", "there is only a longer version"],
  ["0.0.1", "the section is empty"],
])
  test(`refuses a release where ${why}`, () => {
    assert.throws(
      () => sectionOf(CHANGELOG, version ?? ""),
      (error) => error instanceof StepFailure && error.message.includes(`no section for ${version}`),
    );
  });
