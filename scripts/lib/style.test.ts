import assert from "node:assert/strict";
import { test } from "node:test";
import { checkStyle } from "./style.ts";

const found = (path: string, text: string) =>
  checkStyle(path, text).map(
    ({ line, message }) => `${line} ${message.slice(0, message.indexOf('": ') + 1)}`,
  );

test("habits are found in comments, texts and templates of a source", () => {
  const source = [
    "/** Who asks is told. */",
    "// It is for who waits.",
    'const help = "Has the memory returned.";',
    "const said = `$" + "{a} at the most`;",
    "/**",
    " * The value is none to keep,",
    " * and nobody reads it all the same.",
    " */",
    'const b = "koffi is not to be had";',
  ].join("\n");
  assert.deepEqual(found("a.ts", source), [
    '1 "Who asks is told."',
    '2 "for who"',
    '3 "Has the"',
    '4 "at the most"',
    '6 "is none"',
    '7 "nobody"',
    '7 "all the same"',
    '9 "to be had"',
  ]);
});

test("code is not read, and questions may ask who", () => {
  const source = "const nobody = isNone; // Who asked?\nif (a) b(nobody);";
  assert.deepEqual(found("a.ts", source), []);
});

test("pages are read without their code", () => {
  const page = "# Page\n\nIt takes `at the most` 3 s.\n\n```\nnobody\n```\n\nThere is nobody.";
  assert.deepEqual(found("a.md", page), ['9 "nobody"']);
});
