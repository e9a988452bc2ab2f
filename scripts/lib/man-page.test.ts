import assert from "node:assert/strict";
import { test } from "node:test";
import { manPage, splitPage } from "./man-page.ts";

function bodyOf(markdown: string): string[] {
  const text = manPage({
    name: "x",
    section: 7,
    summary: "y",
    body: markdown,
    version: "1.0.0",
    date: "2026-01-31",
  });
  return text.trimEnd().split("\n").slice(3);
}

const CASES: readonly [what: string, markdown: string, roff: readonly string[]][] = [
  ["a heading and a paragraph", "## Bad input\n\nOne\ntwo.\n", [".SH BAD INPUT", "One two."]],
  ["words", "`-a` **B** *c* [d](e.md) <f>\n", [".PP", "\\fB\\-a\\fR \\fIB\\fR \\fIc\\fR d <f>"]],
  ["a code span with a backtick", "``a `b' c`` `d`\n", [".PP", "\\fBa \\(gab\\(aq c\\fR \\fBd\\fR"]],
  ["an address", "[d](https://e.example/f-g)\n", [".PP", "d (https://e.example/f\\-g)"]],
  ["what roff would take for a request", ".a it's\n'b \\c\n", [".PP", "\\&.a it\\(aqs \\(aqb \\ec"]],
  [
    "code",
    "```txt\n.a -b\n\n  c\n```\n",
    [".PP", ".RS 4", ".nf", "\\&.a \\-b", "\\&", "\\&  c", ".fi", ".RE"],
  ],
  [
    "a list in a list",
    "- a\n  b\n  - c\n- d\n",
    ['.IP "\\(bu" 4', "a b", ".RS 4", '.IP "\\(bu" 4', "c", ".RE", '.IP "\\(bu" 4', "d"],
  ],
  ["a numbered list", "1. a\n2. b\n", ['.IP "1." 4', "a", '.IP "2." 4', "b"]],
  ["a table without headings", "| | |\n|---|---|\n| a | b |\n", [".TP", "a", "b"]],
  [
    "a table of two columns",
    "| x | y |\n|---|---|\n| `a` | b |\n",
    [".TP", "\\fIx\\fR", "\\fIy\\fR", ".TP", "\\fBa\\fR", "b"],
  ],
  [
    "a table of more columns",
    "| x | y | z |\n|---|---|---|\n| a\\|b | c | d |\n| e | | f |\n",
    [".TP", "\\fIx\\fR", "\\fIy\\fR; \\fIz\\fR", ".TP", "a|b", "y: c; z: d", ".TP", "e", "z: f"],
  ],
];
for (const [what, markdown, roff] of CASES) test(what, () => assert.deepEqual(bodyOf(markdown), roff));

test("long paragraphs are cut between words, and no line begins as a request", () => {
  const lines = bodyOf(`${"word .dot ".repeat(40)}\n`);
  for (const line of lines.slice(1)) assert.ok(line.length <= 80 && !line.startsWith("."), line);
});

test("the first sentence of a page is its summary", () => {
  assert.deepEqual(splitPage("# any\n\nAnswers ANY\nqueries. And more.\n\n## Syntax\n"), {
    title: "any",
    summary: "Answers ANY queries",
    rest: "And more.\n\n## Syntax\n",
  });
  assert.equal(splitPage("# a\n\nOne sentence\n\n## B\n").summary, "One sentence");
});
