import assert from "node:assert/strict";
import { test } from "node:test";
import { countOf } from "./count-of.ts";

test("one has a word of its own", () => {
  assert.deepEqual(
    [countOf(0, "answer"), countOf(1, "answer"), countOf(2, "answer")],
    ["0 answers", "1 answer", "2 answers"],
  );
  assert.deepEqual(
    [countOf(1, "query", "queries"), countOf(12, "query", "queries")],
    ["1 query", "12 queries"],
  );
});
