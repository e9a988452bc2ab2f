import assert from "node:assert/strict";
import { test } from "node:test";
import { hasTest, namedTests } from "./named-tests.ts";

test("a page names tests by title and file", () => {
  assert.deepEqual(namedTests("| [a b](../test/x.test.ts) | [page](other.md) |"), [
    { title: "a b", file: "../test/x.test.ts" },
  ]);
});

const FILE = `
test("stands alone", () => {});
const CASES = [{ title: "in a table" }];
test(~«title»~, () => {});
test(~«peer» takes a zone from «deep({ a: 1 })».~, () => {});
`
  .replaceAll("~", "`")
  .replaceAll("«", "$\u007b")
  .replaceAll("»", "}");

for (const [title, isThere] of [
  ["stands alone", true],
  ["in a table", true],
  ["stands", false],
  ["takes a zone from", false],
  ["BIND takes a zone from this server.", true],
  ["BIND takes a zone from this server", false],
  ["BIND takes a zone from this server?", false],
  ["whatever", false],
] as const) {
  test(`'${title}' is ${isThere ? "" : "not "}found`, () => {
    assert.equal(hasTest(FILE, title), isThere);
  });
}
