import assert from "node:assert/strict";
import { test } from "node:test";
import { PageCircle } from "./page-circle.ts";

for (const length of [1, 2, 3, 7, 100]) {
  test(`finds a loop of ${length} pages after others within three rounds`, () => {
    const circle = new PageCircle();
    const before = 5;
    for (let page = 0; page < before; page++) assert.equal(circle.closes(`first ${page}`), false);
    let read = 0;
    while (!circle.closes(String(read % length))) read++;
    assert.ok(read >= length && read <= 3 * length + before, `${read} pages were read`);
  });
}

test("accepts any long list without a loop", () => {
  const circle = new PageCircle();
  for (let page = 0; page < 1_000; page++) assert.equal(circle.closes(String(page)), false);
});
