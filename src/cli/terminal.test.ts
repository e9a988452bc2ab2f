import assert from "node:assert/strict";
import { test } from "node:test";
import { paint, wantsColour } from "./terminal.ts";

for (const [isTTY, environment, expected] of [
  [true, {}, true],
  [false, {}, false],
  [true, { NO_COLOR: "1" }, false],
  [true, { NO_COLOR: "" }, true],
  [true, { TERM: "dumb" }, false],
] as const) {
  test(`colours ${isTTY ? "on a terminal" : "in a file"} with ${JSON.stringify(environment)}: ${expected}`, () => {
    assert.equal(wantsColour({ isTTY }, environment), expected);
  });
}

test("a colour ends where its text ends", () => {
  assert.equal(paint("no", "red"), "\u001b[31mno\u001b[39m");
});
