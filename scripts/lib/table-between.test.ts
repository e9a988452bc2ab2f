import assert from "node:assert/strict";
import { test } from "node:test";
import { tableBetween } from "./table-between.ts";

test("a text takes the place of the one between the marks, and can do so again", () => {
  const page = "before\n<!-- x: begin -->\nold\n<!-- x: end -->\nafter\n";
  const once = tableBetween(page, "x", "new");
  assert.equal(once, "before\n<!-- x: begin -->\n\nnew\n\n<!-- x: end -->\nafter\n");
  assert.equal(tableBetween(once, "x", "new"), once);
});

test("a page without the marks is refused", () => {
  assert.throws(
    () => tableBetween("<!-- x: end --> <!-- x: begin -->", "x", ""),
    /expected <!-- x: begin -->/,
  );
  assert.throws(() => tableBetween("", "x", ""), /no place for it/);
});
