import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DiagnosticSink } from "./diagnostic.ts";
import { type CorefileDiagnosticCode, corefileDiagnosticCodes } from "./diagnostic-codes.ts";
import { memoryHost } from "./host.ts";
import { parseCorefile } from "./parser.ts";
import { resolveServerKeys } from "./server-key.ts";

/** A Corefile for each code that raises it and no other error, except for the last of many errors. */
const examples: Readonly<Record<CorefileDiagnosticCode, string>> = {
  COREFILE_BRACE_ON_NEXT_LINE: ".\n{\n}",
  COREFILE_CLOSING_BRACE_NOT_ON_OWN_LINE: ". { log }",
  COREFILE_DIRECTIVE_OUTSIDE_BLOCK: "log {\n class error\n}",
  COREFILE_DUPLICATE_KEY: "a a {\n}",
  COREFILE_EMPTY_KEY: '"" {\n}',
  COREFILE_ENVIRONMENT_ENDLESS: ". {\n log {$SELF}\n}",
  COREFILE_ENVIRONMENT_UNSET: ". {\n log {$UNSET}\n}",
  COREFILE_EXTRA_COMMA: "a, {\n}",
  COREFILE_GLOBAL_OPTIONS_PLACE: ". {\n}\n{\n plugin a ./a.ts\n}",
  COREFILE_IMPORT_ARGUMENT: "(s) {\n log {args[0]}\n}\n. {\n import s\n}",
  COREFILE_IMPORT_GLOB: "import a*b*",
  COREFILE_IMPORT_LIMIT: "import Corefile",
  COREFILE_IMPORT_NOT_FOUND: "import missing",
  COREFILE_IMPORT_NO_MATCH: "import missing*",
  COREFILE_IMPORT_SYNTAX: "import",
  COREFILE_IMPORT_UNREADABLE: "import directory",
  COREFILE_INVALID_PORT: ".:70000 {\n}",
  COREFILE_INVALID_ZONE: "a..b {\n}",
  COREFILE_KEY_IS_DIRECTIVE_NAME: "log {\n}",
  COREFILE_MISSING_CLOSING_BRACE: ". {",
  COREFILE_MISSING_KEY: "{\n}",
  COREFILE_MISSING_SPACE_BEFORE_BRACE: ".{\n}",
  COREFILE_NESTING_TOO_DEEP: `. {\n log ${"{\n x ".repeat(40)}${"\n}".repeat(40)}\n}`,
  COREFILE_SNIPPET_REDEFINED: "(a) {\n}\n(a) {\n}",
  COREFILE_SNIPPET_WITHOUT_BRACES: "(a)",
  COREFILE_TEXT_AFTER_CLOSING_BRACE: ". {\n log {\n } log\n}",
  COREFILE_TOO_LARGE: `. {\n${" log\n".repeat(1_000)}}`,
  COREFILE_TOO_MANY_ERRORS: `. {\n${" lgo\n".repeat(30)}}`,
  COREFILE_TOO_MANY_KEYS: `${Array.from({ length: 10 }, (_, index) => `10.0.${index}.0/25:1-100`).join(" ")} {\n}`,
  COREFILE_UNEXPECTED_CLOSING_BRACE: "}",
  COREFILE_UNEXPECTED_END: "a,",
  COREFILE_UNEXPECTED_OPENING_BRACE: ". {\n {\n }\n}",
  COREFILE_UNKNOWN_DIRECTIVE: ". {\n lgo\n}",
  COREFILE_UNKNOWN_SCHEME: "udp://. {\n}",
  COREFILE_UNTERMINATED_QUOTE: '. {\n log "\n}',
  COREFILE_UNUSUAL_ZONE: "a:b {\n}",
};

describe("corefileDiagnosticCodes", () => {
  const host = memoryHost({
    files: { Corefile: "", "directory/file": "" },
    environment: { SELF: "{$SELF}" },
  });
  for (const [code, text] of Object.entries(examples)) {
    it(`lists ${code}, which has an example`, () => {
      const sink = new DiagnosticSink();
      const parsed = parseCorefile(text, {
        file: "Corefile",
        host,
        directives: ["log"],
        limits: { tokens: 500, errors: 20 },
      });
      sink.addAll(parsed.diagnostics);
      resolveServerKeys(parsed.corefile, sink);
      const codes = new Set(sink.diagnostics.map((diagnostic) => diagnostic.code));
      if (code === "COREFILE_TOO_MANY_ERRORS") codes.delete("COREFILE_UNKNOWN_DIRECTIVE");
      assert.deepEqual(codes, new Set([code]));
      assert.ok(code in corefileDiagnosticCodes);
    });
  }
});
