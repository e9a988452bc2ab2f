// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the sources that are read here have templates
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { tokenize } from "./source-tokens.ts";

const texts = (source: string) => tokenize(source).map(({ text }) => text);
const words = (source: string) =>
  tokenize(source).flatMap(({ kind, text }) => (kind === "word" ? [text] : []));

test("splits code and leaves out space and comments", () => {
  assert.deepEqual(texts("a?.b /* c */ !== d // e\n=> f"), ["a", "?.", "b", "!==", "d", "=>", "f"]);
});

test("counts lines through comments, strings and templates", () => {
  const source = 'a /* 1\n2 */ b\n"x\\\ny" c `\n\n${d}\n` e';
  assert.deepEqual(
    tokenize(source).flatMap(({ kind, text, line }) => (kind === "word" ? [`${text}${line}`] : [])),
    ["a1", "b2", "c4", "d6", "e7"],
  );
});

test("finds no words in strings, templates, comments and regular expressions", () => {
  const sources = [
    '"hidden"',
    "'it\\'s hidden'",
    "`hidden \\` ${0} hidden`",
    "// hidden",
    "/* hidden\nhidden */",
    "= /hidden[/]hidden\\/hidden/giu",
    "(/hidden/)",
    "`${`hidden`}`",
  ];
  for (const source of sources)
    assert.deepEqual(
      words(source).filter((word) => word !== "0"),
      [],
      source,
    );
});

test("reads the code in a template's substitutions", () => {
  assert.deepEqual(words("`x${a + { b: `y${c}` }.b}z` + d"), ["a", "b", "c", "b", "d"]);
});

test("tells division from a regular expression", () => {
  assert.deepEqual(words("a / b / c"), ["a", "b", "c"]);
  assert.deepEqual(words("f(a) / b / c"), ["f", "a", "b", "c"]);
  assert.deepEqual(words("x[0] / b / c"), ["x", "0", "b", "c"]);
  assert.deepEqual(words("x! / b / c"), ["x", "b", "c"]);
  assert.deepEqual(words("i++ / b / c"), ["i", "b", "c"]);
  assert.deepEqual(words("x.return / b / c"), ["x", "return", "b", "c"]);
  assert.deepEqual(words("return /b/ / c"), ["return", "c"]);
  assert.deepEqual(words("!/b/.test(c)"), ["test", "c"]);
  assert.deepEqual(words("if (a) {}\n/b/.test(c)"), ["if", "a", "test", "c"]);
});

test("reads any text to its end, in order", () => {
  const piece = fc.constantFrom(
    "a",
    '"',
    "'",
    "`",
    "${",
    "}",
    "{",
    "/",
    "*",
    "\\",
    "\n",
    "!",
    " ",
    "[",
    "]",
    "é",
    "1",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      const source = pieces.join("");
      const lines = source.split("\n");
      let from = 0;
      let lineBefore = 1;
      for (const { text, line } of tokenize(source)) {
        // The first place is not always the one: comments that were passed over may say the same.
        const at = source.indexOf(text, from);
        assert.ok(at >= from, `${text} is not where it was found`);
        const [start = ""] = text.split("\n");
        assert.ok(line >= lineBefore && lines[line - 1]?.includes(start), `${text} is not in line ${line}`);
        from = at + text.length;
        lineBefore = line;
      }
    }),
  );
});
