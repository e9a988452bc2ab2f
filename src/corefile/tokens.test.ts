import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { lex } from "./tokens.ts";

function texts(text: string): string[] {
  return lex(text, "Corefile").tokens.map((token) => token.text);
}

/** Texts of each line, as divided by `startsLine`. */
function lines(text: string): string[][] {
  const result: string[][] = [];
  for (const token of lex(text, "Corefile").tokens) {
    if (token.startsLine) result.push([]);
    result.at(-1)?.push(token.text);
  }
  return result;
}

describe("lex", () => {
  const words: [what: string, text: string, tokens: string[]][] = [
    ["nothing", "", []],
    ["only space", " \t\n\r\n", []],
    ["words separated by space", "a b\tc\nd", ["a", "b", "c", "d"]],
    [
      "words separated by any Unicode white space",
      "a\u00a0b\u2003c\u3000d\u0085e\u2028f\vg",
      ["a", "b", "c", "d", "e", "f", "g"],
    ],
    [
      "a zero-width space and an inner byte-order mark as part of a word",
      "a\u200bb\ufeffc",
      ["a\u200bb\ufeffc"],
    ],
    ["one leading byte-order mark as nothing", "\ufeff. {", [".", "{"]],
    ["a second byte-order mark as part of a word", "\ufeff\ufeff.", ["\ufeff."]],
    ["a carriage return as nothing at all", "a\rb\r\nc \r d", ["ab", "c", "d"]],
    ["a quoted text as one word", '"a b" c', ["a b", "c"]],
    ["an empty quoted text as a word", 'a "" b', ["a", "", "b"]],
    ["an escaped quotation mark", String.raw`"say \"hi\""`, ['say "hi"']],
    ["every other backslash as it is", String.raw`"a\nb\\ \x"`, [String.raw`a\nb\\ \x`]],
    ["a quotation mark after two backslashes as the end", String.raw`"a\\" b`, [String.raw`a\\`, "b"]],
    ["a backslash outside of quotes as it is", String.raw`a\"b \c`, [String.raw`a\"b`, String.raw`\c`]],
    ["a line break within quotes", '"a\nb" c', ["a\nb", "c"]],
    ["a number sign within quotes", '"a # b" c', ["a # b", "c"]],
    ["a quotation mark within a word", 'a"b c"d', ['a"b', 'c"d']],
    ["a word right after a quoted text", '"a"b', ["a", "b"]],
    ["a comment", "a # b c\nd", ["a", "d"]],
    ["a comment in the middle of a word", "foo#bar baz\nqux", ["foo", "qux"]],
    ["a comment at the end without line break", "a #", ["a"]],
    ["a quotation mark in a comment", 'a # "b\nc', ["a", "c"]],
    ["an unterminated quoted text as it is", 'a "b c\n', ["a", "b c\n"]],
    ["an unterminated empty quoted text as an empty word", 'a "', ["a", ""]],
    ["a final backslash of an unterminated quoted text", String.raw`"a\ `.trimEnd(), ["a\\"]],
    ["single quotes and backquotes as ordinary characters", "'a b' `c d`", ["'a", "b'", "`c", "d`"]],
  ];
  for (const [what, text, tokens] of words) {
    it(`reads ${what}`, () => assert.deepEqual(texts(text), tokens));
  }

  it("takes a brace for one only if it is a separate, unquoted word", () => {
    const kinds = lex('{ } foo{ {} }} "{" "}" {$A} { #}', "Corefile").tokens.map((token) => token.kind);
    assert.deepEqual(kinds, [
      "opening-brace",
      "closing-brace",
      "word",
      "word",
      "word",
      "word",
      "word",
      "word",
      "opening-brace",
    ]);
  });

  it("marks the tokens that start a line; a line break within quotes starts none", () => {
    assert.deepEqual(lines('a b\n\n  c "d\n\ne" f # x\n# y\ng\r\nh\r'), [
      ["a", "b"],
      ["c", "d\n\ne", "f"],
      ["g"],
      ["h"],
    ]);
  });

  it("records file, line, column and length in UTF-16 code units", () => {
    const places = lex('\ufeffa  "b\nc"  d\n\té𝄞 x\r\n  y\r\r z', "dir/file").tokens.map(({ text, span }) => [
      text,
      `${span.file}:${span.line}:${span.column}+${span.length}`,
    ]);
    assert.deepEqual(places, [
      ["a", "dir/file:1:1+1"],
      ["b\nc", "dir/file:1:4+5"],
      ["d", "dir/file:2:5+1"],
      ["é𝄞", "dir/file:3:2+3"],
      ["x", "dir/file:3:6+1"],
      ["y", "dir/file:4:3+1"],
      ["z", "dir/file:4:7+1"],
    ]);
  });

  it("returns the comments with their places", () => {
    assert.deepEqual(lex("#a\r\nb #c d\n", "").comments, [
      { text: "#a", line: 1, start: 0 },
      { text: "#c d", line: 2, start: 6 },
    ]);
  });

  it("reports a missing quotation mark", () => {
    assert.equal(lex('a "b"', "").unterminated, undefined);
    assert.equal(lex('a "b\n}', "").unterminated?.text, "b\n}");
  });

  it("stops at its limit, and reports it only if text was left", () => {
    assert.equal(lex("a b c #d\n", "", 3).truncated, false);
    const lexed = lex("a b c d", "", 3);
    assert.equal(lexed.truncated, true);
    assert.equal(lexed.tokens.length, 3);
  });

  it("reads any text, and covers everything but spaces and comments", () => {
    const part = fc.constantFrom(
      '"',
      "\\",
      "#",
      "{",
      "}",
      " ",
      "\n",
      "\r",
      "\t",
      "a",
      "é",
      "{$A}",
      "\ufeff",
      "\u2028",
    );
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.array(part).map((parts) => parts.join("")),
    );
    fc.assert(
      fc.property(text, (source) => {
        const { tokens, comments } = lex(source, "f");
        let position = 0;
        for (const item of [...tokens, ...comments].sort((left, right) => left.start - right.start)) {
          assert.match(source.slice(position, item.start), /^[\s\u0085]*$/u);
          position =
            "end" in item ? item.end : (source.indexOf("\n", item.start) + 1 || source.length + 1) - 1;
        }
        assert.match(source.slice(position), /^[\s\u0085]*$/u);
        for (const { span, start, text: word, quoted } of tokens) {
          const before = source.slice(0, start).split("\n");
          assert.equal(span.line, before.length);
          const offset = source.startsWith("\ufeff") && before.length === 1 ? 1 : 0;
          assert.equal(span.column, (before.at(-1) ?? "").length + 1 - offset);
          assert.ok(!word.includes("\r"));
          if (!quoted) assert.doesNotMatch(word, /[ \t\n#]/);
        }
      }),
    );
  });
});
