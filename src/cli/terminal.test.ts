import assert from "node:assert/strict";
import { test } from "node:test";
import { fitted, paint, terminalWidth, wantsColour, wrapText } from "./terminal.ts";

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

for (const [columns, told, expected] of [
  [100, undefined, 100],
  [undefined, "72", 72],
  [undefined, undefined, 80],
  [undefined, "wide", 80],
  [0, undefined, 80],
  [400, undefined, 120],
] as const) {
  test(`a terminal of ${columns} columns, with COLUMNS ${told}, uses ${expected}`, () => {
    const stream = columns === undefined ? {} : { columns };
    assert.equal(terminalWidth(stream, told === undefined ? {} : { COLUMNS: told }), expected);
  });
}

test("colours take no room in a line", () => {
  assert.deepEqual(wrapText(`${paint("one", "red")} two three`, 7), [`${paint("one", "red")} two`, "three"]);
});

test("a line that does not fit continues below its second column", () => {
  assert.equal(fitted("  -a A  one two three\nshort", 16), "  -a A  one two\n        three\nshort");
  assert.equal(fitted("  one two three", 10), "  one two\n  three");
});
