import assert from "node:assert/strict";
import { test } from "node:test";
import { isInVersionRange, VersionRangeError } from "./version-range.ts";

for (const [version, range, expected] of [
  ["0.2.0", ">=0.2.0", true],
  ["0.1.9", ">=0.2.0", false],
  ["0.10.0", ">=0.9.0", true],
  ["1.0.0", ">=0.2 <1", false],
  ["0.99.3", " >=0.2  <1 ", true],
  ["1.2.3", "=1.2.3", true],
  ["1.2.3", "=1.2", false],
  ["1.2.3", ">1.2.2", true],
  ["1.2.3", "<=1.2.3", true],
  ["0.2.0-beta.1", ">=0.2.0", true],
] as const) {
  test(`${version} is ${expected ? "" : "not "}in '${range}'`, () => {
    assert.equal(isInVersionRange(version, range), expected);
  });
}

for (const range of ["", "0.2", "^0.2.0", ">=", ">= 0.2", ">=0.2.0.0", ">=a", "latest"]) {
  test(`'${range}' is no range`, () => {
    assert.throws(() => isInVersionRange("1.0.0", range), new VersionRangeError(range));
  });
}
