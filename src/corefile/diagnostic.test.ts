import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { type Diagnostic, DiagnosticSink, formatDiagnostic, quoteText, type Span } from "./diagnostic.ts";

const span: Span = { file: "Corefile", line: 2, column: 5, length: 7 };
const source = ". {\n    forwrad . 8.8.8.8\n}\n";

function printed(parts: Partial<Diagnostic>, text?: string): string[] {
  const diagnostic: Diagnostic = {
    code: "COREFILE_UNKNOWN_DIRECTIVE",
    severity: "error",
    message: "Unknown directive 'forwrad'",
    span,
    ...parts,
  };
  return formatDiagnostic(diagnostic, text).split("\n");
}

describe("formatDiagnostic", () => {
  it("prints place, severity and message, then the source line underlined, then help", () => {
    assert.deepEqual(printed({ suggestion: "forward" }, source), [
      "Corefile:2:5: error: Unknown directive 'forwrad'",
      "  2 |     forwrad . 8.8.8.8",
      "    |     ^^^^^^^",
      "  help: did you mean 'forward'?",
    ]);
  });

  it("leaves the source line out when its text is not available", () => {
    assert.deepEqual(printed({ severity: "warning" }), [
      "Corefile:2:5: warning: Unknown directive 'forwrad'",
    ]);
    assert.deepEqual(printed({ span: { ...span, line: 99 } }, source).length, 1);
  });

  it("prints the expectation, the notes, and each import on the way", () => {
    const importedAt: Span = {
      file: "Corefile",
      line: 9,
      column: 5,
      length: 6,
      importedAt: { file: "main", line: 1, column: 1, length: 6 },
    };
    assert.deepEqual(printed({ expected: "a name", notes: ["one", "two"], span: { ...span, importedAt } }), [
      "Corefile:2:5: error: Unknown directive 'forwrad'",
      "  help: expected a name",
      "  note: one",
      "  note: two",
      "  note: imported at Corefile:9:5",
      "  note: imported at main:1:1",
    ]);
  });

  it("keeps the underline in step with tabs and with escaped characters", () => {
    assert.deepEqual(printed({}, ". {\n\t\u202e\u001b\tforwrad\n").slice(1), [
      "  2 |     \\u{202e}\\u{1b}    forwrad",
      `    | ${" ".repeat("    \\u{202e}\\u{1b}    ".length)}^^^^^^^`,
    ]);
  });

  it("does not count a byte-order mark and does not print a carriage return", () => {
    const lines = printed({ span: { ...span, line: 1, column: 1, length: 1 } }, "\ufeff. {\r\n}\r\n");
    assert.deepEqual(lines.slice(1), ["  1 | . {", "    | ^"]);
  });

  it("underlines at least one column, and no further than the line's end", () => {
    assert.equal(
      printed({ span: { ...span, column: 22, length: 0 } }, source)[2],
      `    | ${" ".repeat(21)}^`,
    );
    assert.equal(
      printed({ span: { ...span, column: 15, length: 50 } }, source)[2],
      `    | ${" ".repeat(14)}^^^^^^^`,
    );
  });

  it("cuts a very long line to the part around the fault", () => {
    const lines = printed(
      { span: { ...span, line: 1, column: 5_001, length: 3 } },
      `${"x".repeat(5_000)}bad${"y".repeat(5_000)}`,
    );
    assert.ok((lines[1] ?? "").length < 200);
    const underline = lines[2] ?? "";
    assert.equal(lines[1]?.slice(underline.indexOf("^"), underline.length), "bad");
  });

  it("never throws, and never prints a control character of the source", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }),
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 1, max: 9 }),
        fc.nat(20),
        (text, line, column, length) => {
          const out = printed({ span: { file: text, line, column, length } }, text).join("");
          assert.doesNotMatch(out, /\p{Cc}/u);
        },
      ),
    );
  });
});

describe("quoteText", () => {
  it("cuts long text and escapes invisible characters", () => {
    assert.equal(quoteText("for\u200bward"), "'for\\u{200b}ward'");
    assert.equal(quoteText("x".repeat(300)).length, 105);
  });
});

describe("DiagnosticSink", () => {
  it("keeps the order, and leaves out missing details", () => {
    const sink = new DiagnosticSink();
    sink.warning("A", span, "first", { expected: undefined, suggestion: undefined, notes: [] });
    assert.equal(sink.hasErrors, false);
    sink.error("B", span, "second", { expected: "x", suggestion: "y", notes: ["z"] });
    assert.equal(sink.hasErrors, true);
    assert.deepEqual(sink.diagnostics, [
      { code: "A", severity: "warning", message: "first", span },
      { code: "B", severity: "error", message: "second", span, expected: "x", suggestion: "y", notes: ["z"] },
    ]);
  });

  it("counts diagnostics beyond its limit, and keeps errors however many warnings there are", () => {
    const sink = new DiagnosticSink(1);
    for (const message of ["first", "second", "third"]) sink.warning("A", span, message);
    for (const message of ["fourth", "fifth"]) sink.error("B", span, message);
    assert.deepEqual(
      sink.diagnostics.map(({ message }) => message),
      ["first", "fourth"],
    );
    assert.equal(sink.dropped, 3);
    assert.equal(sink.hasErrors, true);
  });

  it("adds the diagnostics of another sink", () => {
    const elsewhere = new DiagnosticSink();
    elsewhere.warning("A", span, "first");
    elsewhere.error("B", span, "second", { expected: "x", suggestion: "y", notes: ["z"] });
    const sink = new DiagnosticSink();
    sink.addAll(elsewhere.diagnostics);
    assert.deepEqual(sink.diagnostics, elsewhere.diagnostics);
    assert.equal(sink.hasErrors, true);
  });
});
