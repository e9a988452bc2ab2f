import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { MAX_YAML_DOCUMENT, type ParsedDocument, parseDocuments } from "./parse-documents.ts";

/** The value of each document, or `LINE: PROBLEM` of a faulty one. */
function read(text: string): unknown[] {
  return Array.from(parseDocuments(text), (parsed) =>
    "problem" in parsed ? `${parsed.line}: ${parsed.problem}` : parsed.value,
  );
}

function first(text: string): Exclude<ParsedDocument, { problem: string }> {
  for (const parsed of parseDocuments(text)) if (!("problem" in parsed)) return parsed;
  return assert.fail("no document");
}

describe("parseDocuments", () => {
  const cases: [title: string, text: string, documents: unknown[]][] = [
    ["no text", "", []],
    ["comments and blank lines", "# nothing\n\n---\n# here\n", []],
    ["one document", "a: 1\n", [{ a: 1 }]],
    ["several documents", "a: 1\n---\nb: 2\n--- # third\nc: 3\n", [{ a: 1 }, { b: 2 }, { c: 3 }]],
    ["content on the marker's line", "--- {a: 1}\n---\t{b: 2}\n", [{ a: 1 }, { b: 2 }]],
    ["an end marker", "a: 1\n...\nb: 2\n", [{ a: 1 }, { b: 2 }]],
    ["a directive", "%YAML 1.2\n---\na: 1\n", [{ a: 1 }]],
    ["a byte order mark", "\uFEFFa: 1\n", [{ a: 1 }]],
    ["carriage returns", "a: 1\r\n---\r\nb: 2\r\n", [{ a: 1 }, { b: 2 }]],
    ["dashes inside of a text", "a: |\n  ---\n  x\nb: ----\n", [{ a: "---\nx\n", b: "----" }]],
    ["an empty document between others", "a: 1\n---\n---\nb: 2\n", [{ a: 1 }, { b: 2 }]],
    ["an explicit null", "null\n", []],
    ["JSON", '{"a": {"b": [1]}}', [{ a: { b: [1] } }]],
    ["JSON documents", '{"a": 1}\n---\n{"b": 2}\n', [{ a: 1 }, { b: 2 }]],
    ["anchors and merges", "a: &x {b: 1}\nc: {<<: *x, d: 2}\n", [{ a: { b: 1 }, c: { b: 1, d: 2 } }]],
    [
      "addresses that look like numbers to YAML 1.1",
      "a: 1:20:30\nb: fd00::1\nc: on\n",
      [{ a: "1:20:30", b: "fd00::1", c: "on" }],
    ],
  ];
  for (const [title, text, documents] of cases)
    it(`reads ${title}`, () => assert.deepEqual(read(text), documents));

  const faults: [title: string, text: string, documents: (RegExp | object)[]][] = [
    [
      "a quote that is not closed",
      'a: 1\n---\nb: "x\n---\nc: 3\n',
      [{ a: 1 }, /^[34]: not valid YAML: .*quote/, { c: 3 }],
    ],
    ["a bracket that is not closed", "a: [1\n---\nb: 2\n", [/^[12]: not valid YAML/, { b: 2 }]],
    ["a tab for indentation", "a:\n\tb: 1\n", [/^2: not valid YAML/]],
    ["a key twice", "a: 1\nb: 2\na: 3\n", [/^3: not valid YAML: .*unique/]],
    ["half a JSON document", '{"a": 1,\n"b": [\n', [/^[123]: not valid YAML/]],
    ["an alias to nowhere", "a: 1\nb: *x\n", [/^[12]: not valid YAML: .*alias/]],
    ["deep nesting", `a: ${"[".repeat(100_000)}`, [/^1: not valid YAML/]],
  ];
  for (const [title, text, documents] of faults) {
    it(`skips ${title}, and that alone`, () => {
      const found = read(text);
      assert.equal(found.length, documents.length);
      for (const [index, expected] of documents.entries()) {
        if (expected instanceof RegExp) assert.match(String(found[index]), expected);
        else assert.deepEqual(found[index], expected);
      }
    });
  }

  it("stops at aliases that multiply", () => {
    const lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"];
    for (let level = 1; level < 10; level++) {
      lines.push(`a${level}: &a${level} [${new Array(9).fill(`*a${level - 1}`).join(",")}]`);
    }
    assert.match(String(read(lines.join("\n"))[0]), /^1: not valid YAML: .*alias/i);
  });

  it("refuses a YAML document that would take too long, and reads JSON of that size", () => {
    const filler = "x".repeat(MAX_YAML_DOCUMENT);
    assert.match(String(read(`a: ${filler}`)[0]), /^1: a YAML document of more than 8 MiB/);
    assert.deepEqual(read(JSON.stringify({ a: filler })), [{ a: filler }]);
  });

  it("knows the line of a document and of an item of its list", () => {
    const text = "# head\na: 1\n---\nitems:\n  - b: 1\n  - b: 2\n";
    const [one, two] = Array.from(parseDocuments(text));
    assert.ok(one && two && !("problem" in one) && !("problem" in two));
    assert.equal(one.lineOf([]), 2);
    assert.equal(two.lineOf([]), 4);
    assert.equal(two.lineOf(["items", 1]), 6);
    assert.equal(two.lineOf(["nowhere", 7]), 3);
    assert.equal(first('---\n\n{"a": 1}').lineOf(["a"]), 1);
  });

  it("throws on no text whatever", () => {
    const piece = fc.constantFrom(
      "---\n",
      "a:",
      " ",
      "\n",
      "- ",
      "[",
      "]",
      "{",
      "}",
      '"',
      "'",
      "&x ",
      "*x ",
      "|",
      "%",
      "\t",
      "é",
      "#",
      "!t ",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        for (const parsed of parseDocuments(pieces.join(""))) {
          if ("problem" in parsed) assert.ok(parsed.line >= 1);
        }
      }),
    );
  });
});
