import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { stripVTControlCharacters } from "node:util";
import type { Diagnostic } from "../../corefile/diagnostic.ts";
import { version } from "../../lib/text/version.ts";
import { paint } from "../terminal.ts";
import type { CheckedFile } from "./checked-file.ts";
import { FORMATS } from "./formats.ts";

const TEXT = ". {\n    forwrad . 192.0.2.1\n    hosts\n}\n";

const error: Diagnostic = {
  code: "COREFILE_UNKNOWN_DIRECTIVE",
  severity: "error",
  message: "Unknown directive 'forwrad'",
  span: { file: "my dir/Corefile", line: 2, column: 5, length: 7 },
  suggestion: "forward",
};

const warning: Diagnostic = {
  code: "LINT_FALLTHROUGH_MISSING",
  severity: "warning",
  message: "100% of it: nothing,\nreally",
  span: {
    file: "my dir/part",
    line: 3,
    column: 1,
    length: 5,
    importedAt: { file: "my dir/Corefile", line: 1, column: 2, length: 6 },
  },
  expected: "fallthrough",
};

const faulty: CheckedFile = {
  file: "my dir/Corefile",
  diagnostics: [error, warning],
  textOf: (file) => (file === "my dir/Corefile" ? TEXT : undefined),
};
const clean: CheckedFile = { file: "stdin", diagnostics: [], textOf: () => TEXT };

const formatters = new Map(
  await Promise.all([...FORMATS].map(async ([name, load]) => [name, await load()] as const)),
);

function format(name: string, files: readonly CheckedFile[], colour = false): string {
  const formatter = formatters.get(name);
  assert.ok(formatter !== undefined);
  return formatter(files, colour);
}

describe("human", () => {
  it("shows and counts diagnostics", () => {
    assert.equal(
      format("human", [faulty, clean]),
      [
        "my dir/Corefile:2:5: error: Unknown directive 'forwrad'",
        "  2 |     forwrad . 192.0.2.1",
        "    |     ^^^^^^^",
        "  help: did you mean 'forward'?",
        "",
        "my dir/part:3:1: warning: 100% of it: nothing,\\u{a}really",
        "  help: expected fallthrough",
        "  note: imported at my dir/Corefile:1:2",
        "",
        "my dir/Corefile: 1 error, 1 warning",
        "stdin: no faults",
        "",
      ].join("\n"),
    );
  });

  it("colours severity, caret and labels, and nothing else", () => {
    const text = format("human", [faulty], true);
    const [first, , carets, help] = text.split("\n");
    assert.ok(first?.includes(`: ${paint("error", "red")}: Unknown`));
    assert.ok(carets?.endsWith(`| ${" ".repeat(4)}${paint("^^^^^^^", "red")}`));
    assert.ok(help?.startsWith(`  ${paint("help", "cyan")}: did`));
    assert.ok(text.includes(`: ${paint("warning", "yellow")}: 100%`));
    assert.equal(stripVTControlCharacters(text), format("human", [faulty]));
  });
});

it("json has every field, without nesting", () => {
  assert.deepEqual(JSON.parse(format("json", [faulty, clean])), {
    files: ["my dir/Corefile", "stdin"],
    errors: 1,
    warnings: 1,
    diagnostics: [
      {
        code: "COREFILE_UNKNOWN_DIRECTIVE",
        severity: "error",
        message: "Unknown directive 'forwrad'",
        suggestion: "forward",
        file: "my dir/Corefile",
        line: 2,
        column: 5,
        length: 7,
      },
      {
        code: "LINT_FALLTHROUGH_MISSING",
        severity: "warning",
        message: "100% of it: nothing,\nreally",
        expected: "fallthrough",
        file: "my dir/part",
        line: 3,
        column: 1,
        length: 5,
        importedAt: [{ file: "my dir/Corefile", line: 1, column: 2 }],
      },
    ],
  });
});

it("github has one escaped line per diagnostic", () => {
  assert.equal(
    format("github", [faulty, clean]),
    [
      "::error file=my dir/Corefile,line=2,col=5,endColumn=12,title=COREFILE_UNKNOWN_DIRECTIVE::Unknown directive 'forwrad'%0Adid you mean 'forward'?",
      "::warning file=my dir/part,line=3,col=1,endColumn=6,title=LINT_FALLTHROUGH_MISSING::100%25 of it: nothing,%0Areally%0Aexpected fallthrough",
      "",
    ].join("\n"),
  );
});

it("sarif has rules, places and the import that led to a text", () => {
  const place = (uri: string, startLine: number, startColumn: number, endColumn: number) => ({
    physicalLocation: { artifactLocation: { uri }, region: { startLine, startColumn, endColumn } },
  });
  assert.deepEqual(JSON.parse(format("sarif", [faulty, clean])), {
    $schema: "https://json.schemastore.org/sarif-2.1.0.json",
    version: "2.1.0",
    runs: [
      {
        tool: {
          driver: {
            name: "portolan check",
            version,
            rules: [
              {
                id: "COREFILE_UNKNOWN_DIRECTIVE",
                shortDescription: { text: "a directive does not exist" },
              },
              {
                id: "LINT_FALLTHROUGH_MISSING",
                shortDescription: {
                  text: "a plugin without fallthrough keeps names that a later plugin could answer",
                },
              },
            ],
          },
        },
        columnKind: "utf16CodeUnits",
        results: [
          {
            ruleId: "COREFILE_UNKNOWN_DIRECTIVE",
            ruleIndex: 0,
            level: "error",
            message: { text: "Unknown directive 'forwrad'\ndid you mean 'forward'?" },
            locations: [place("my%20dir/Corefile", 2, 5, 12)],
          },
          {
            ruleId: "LINT_FALLTHROUGH_MISSING",
            ruleIndex: 1,
            level: "warning",
            message: { text: "100% of it: nothing,\nreally\nexpected fallthrough" },
            locations: [place("my%20dir/part", 3, 1, 6)],
            relatedLocations: [
              { ...place("my%20dir/Corefile", 1, 2, 8), message: { text: "imported here" } },
            ],
          },
        ],
      },
    ],
  });
});
