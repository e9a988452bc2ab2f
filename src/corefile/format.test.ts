import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { canonicalDump } from "./canonical-dump.ts";
import { formatCorefile } from "./format.ts";
import { memoryHost } from "./host.ts";
import { parseCorefile } from "./parser.ts";
import { lex } from "./tokens.ts";

describe("formatCorefile", () => {
  const cases: [what: string, before: string, after: string][] = [
    ["nothing of nothing", "", ""],
    ["nothing of blank lines", "\n \n\t\n", ""],
    ["comments alone", "  # a\n\n\n#b", "# a\n\n#b\n"],
    ["four spaces a level", ".{ {\n}".replace(".{", "."), ". {\n}\n"],
    [
      "four spaces a level of nesting",
      ".:53 {\nerrors\n\tforward  .   1.1.1.1 {\n\t\tmax_fails 3\n\t}\n  }",
      ".:53 {\n    errors\n    forward . 1.1.1.1 {\n        max_fails 3\n    }\n}\n",
    ],
    [
      "lines of their own for blocks on one line",
      ". { errors { stacktrace } }\n",
      ". {\n    errors {\n        stacktrace\n    }\n}\n",
    ],
    ["two lines for empty blocks", ". { }", ". {\n}\n"],
    ["a line of its own for a block after another", "a {\n} b {\n}", "a {\n}\nb {\n}\n"],
    [
      "comments where they were",
      "# top\n. { # opens\n  # in front\n errors # behind\n\n  # alone\n}   # closes\n# end",
      "# top\n. { # opens\n    # in front\n    errors # behind\n\n    # alone\n} # closes\n# end\n",
    ],
    ["a space before a comment that was glued on", "a#b c\nd", "a #b c\nd\n"],
    [
      "at most one blank line, none next to braces",
      "\n\na {\n\n\n  x\n\n\n\n  y\n\n}\n\n\nb {\n # c\n\n}\n\n",
      "a {\n    x\n\n    y\n}\n\nb {\n    # c\n}\n",
    ],
    ["no blank line below a brace with a comment", "a { # c\n\n x\n}", "a { # c\n    x\n}\n"],
    ["quoted text as it is", '. {\n log  "a  \\" {\n\tb"  c\n}', '. {\n    log "a  \\" {\n\tb" c\n}\n'],
    ["keys on several lines", "a,\n  b,\n  c {\n}", "a,\nb,\nc {\n}\n"],
    [
      "a block without braces",
      "a.org\n  errors\n  log {\n class error\n }",
      "a.org\nerrors\nlog {\n    class error\n}\n",
    ],
    ["Unix line ends, and no byte-order mark", "\ufeffa {\r\n x\r\n}\r\n", "a {\n    x\n}\n"],
    ["snippets and imports", "(s) {\nlog\n}\n. { import s }", "(s) {\n    log\n}\n. {\n    import s\n}\n"],
  ];
  for (const [what, before, after] of cases) {
    it(`makes ${what}`, () => {
      assert.equal(formatCorefile(before), after);
      assert.equal(formatCorefile(after), after);
    });
  }

  for (const text of ["a {\n", "a {\n}\n}", "}\n{", 'a "b\n{', "  a { } }"]) {
    it(`leaves a text with unmatched braces or quotes alone: ${JSON.stringify(text)}`, () => {
      assert.equal(formatCorefile(text), text);
    });
  }

  const word = fc.constantFrom(
    "log",
    "a",
    ".",
    "x.org",
    '"q w"',
    '"\\"{\n"',
    "{$A}",
    "{x}",
    "import",
    "import s",
    "(s)",
    "a,",
    "1",
  );
  const space = fc.constantFrom(" ", "  ", "\t", " \r");
  const lineEnd = fc.constantFrom("\n", "\r\n", " # c\n", "#c\n", "\n\n\n", "\n# own\n", " \n \n");
  const line = fc.tuple(fc.array(word, { minLength: 1, maxLength: 3 }), space, lineEnd);
  const directive = line.map(([words, gap, end]) => `${gap}${words.join(gap)}${end}`);
  const block = (inside: fc.Arbitrary<string>) =>
    fc
      .tuple(
        word,
        space,
        lineEnd,
        fc.array(fc.oneof(directive, inside), { maxLength: 4, size: "max" }),
        fc.boolean(),
        lineEnd,
      )
      .map(
        ([name, gap, end, lines, tight, last]) =>
          `${name}${gap}{${tight ? " " : end}${lines.join("")}${gap}}${last}`,
      );
  const corefile = fc
    .tuple(lineEnd, fc.array(block(block(fc.constant(""))), { maxLength: 4, size: "max" }))
    .map(([start, blocks]) => `${start.replace(/^#c/, "")}${blocks.join("")}`);
  const part = fc.constantFrom(
    "{",
    "}",
    "\n",
    " ",
    "\r",
    "#",
    '"',
    "\\",
    "a",
    "import",
    "a,",
    "x{",
    "{}",
    "\u2028",
    "\ufeff",
  );
  const soup = fc.array(part, { maxLength: 40, size: "max" }).map((parts) => parts.join(""));
  const host = memoryHost({ files: { s: "log\n" }, environment: { A: "value" } });

  it("formatting twice is the same as once, on any text", () => {
    fc.assert(
      fc.property(fc.oneof(corefile, soup, fc.string({ unit: "binary" })), (text) => {
        const once = formatCorefile(text);
        assert.equal(formatCorefile(once), once);
      }),
      { numRuns: 1_000 },
    );
  });

  it("keeps every word and every comment, on any text", () => {
    fc.assert(
      fc.property(fc.oneof(corefile, soup), (text) => {
        const before = lex(text, "");
        const after = lex(formatCorefile(text), "");
        assert.deepEqual(
          after.tokens.map((token) => [token.kind, token.text]),
          before.tokens.map((token) => [token.kind, token.text]),
        );
        assert.deepEqual(
          after.comments.map((comment) => comment.text.trimEnd()),
          before.comments.map((comment) => comment.text.trimEnd()),
        );
      }),
      { numRuns: 1_000 },
    );
  });

  it("does not change the meaning of a Corefile", () => {
    let compared = 0;
    fc.assert(
      fc.property(fc.oneof(corefile, soup), (text) => {
        const before = parseCorefile(text, { file: "Corefile", host });
        if (before.diagnostics.some(({ severity }) => severity === "error")) return;
        compared++;
        const after = parseCorefile(formatCorefile(text), { file: "Corefile", host });
        assert.deepEqual(
          after.diagnostics.filter(({ severity }) => severity === "error"),
          [],
        );
        assert.equal(canonicalDump(after.corefile), canonicalDump(before.corefile));
      }),
      { numRuns: 1_000 },
    );
    assert.ok(compared > 100, `only ${compared} of the texts were without fault`);
  });
});
