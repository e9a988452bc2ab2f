/** The errors of a Corefile's form: those that a reader sees without its imports, its environment and the list of plugins. */
import type { Diagnostic } from "./diagnostic.ts";
import type { CorefileDiagnosticCode } from "./diagnostic-codes.ts";
import { memoryHost } from "./host.ts";
import { parseCorefile } from "./parser.ts";

const CODES: ReadonlySet<string> = new Set<CorefileDiagnosticCode>([
  "COREFILE_CLOSING_BRACE_NOT_ON_OWN_LINE",
  "COREFILE_EXTRA_COMMA",
  "COREFILE_MISSING_CLOSING_BRACE",
  "COREFILE_MISSING_SPACE_BEFORE_BRACE",
  "COREFILE_NESTING_TOO_DEEP",
  "COREFILE_SNIPPET_WITHOUT_BRACES",
  "COREFILE_TEXT_AFTER_CLOSING_BRACE",
  "COREFILE_TOO_LARGE",
  "COREFILE_UNEXPECTED_CLOSING_BRACE",
  "COREFILE_UNEXPECTED_END",
  "COREFILE_UNEXPECTED_OPENING_BRACE",
  "COREFILE_UNTERMINATED_QUOTE",
]);

/** Reads nothing but the text, so an imported part of a Corefile is fine as well. */
export function syntaxErrors(text: string, file: string): readonly Diagnostic[] {
  const { diagnostics } = parseCorefile(text, { file, host: memoryHost() });
  return diagnostics.filter(({ severity, code }) => severity === "error" && CODES.has(code));
}
