/** Common mistakes of operators, and the exact messages. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DiagnosticSink, formatDiagnostic } from "./diagnostic.ts";
import { classicMistakes } from "./fixtures/classic-mistakes.ts";
import { memoryHost } from "./host.ts";
import { parseCorefile } from "./parser.ts";
import { resolveServerKeys } from "./server-key.ts";

const directives = ["bind", "cache", "errors", "forward", "hosts", "log", "whoami"];

describe("classic mistakes in a Corefile", () => {
  for (const [what, lines, printed] of classicMistakes) {
    it(`explains ${what}`, () => {
      const text = lines.join("\n");
      const { corefile, diagnostics } = parseCorefile(text, {
        file: "Corefile",
        host: memoryHost(),
        directives,
      });
      const sink = new DiagnosticSink();
      sink.addAll(diagnostics);
      resolveServerKeys(corefile, sink);
      const output = sink.diagnostics.flatMap((diagnostic) => formatDiagnostic(diagnostic, text).split("\n"));
      assert.deepEqual(output, printed);
    });
  }
});
