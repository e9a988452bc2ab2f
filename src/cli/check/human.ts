import { type Diagnostic, formatDiagnostic } from "../../corefile/diagnostic.ts";
import { countOf } from "../../lib/text/count-of.ts";
import { type Colour, paint } from "../terminal.ts";
import type { CheckedFile } from "./checked-file.ts";

/** Prints each diagnostic with its line and a caret, then the totals. */
export function formatForPeople(files: readonly CheckedFile[], colour: boolean): string {
  const parts: string[] = [];
  for (const { file, form, diagnostics, textOf } of files) {
    for (const diagnostic of diagnostics) {
      const text = formatDiagnostic(diagnostic, textOf(diagnostic.span.file));
      parts.push(`${colour ? coloured(text, diagnostic) : text}\n\n`);
    }
    const name = `${JSON.stringify(file).slice(1, -1)}${form === undefined ? "" : ` (${form})`}`;
    parts.push(`${name}: ${summary(diagnostics)}\n`);
  }
  return parts.join("");
}

function summary(diagnostics: readonly Diagnostic[]): string {
  const errors = diagnostics.filter(({ severity }) => severity === "error").length;
  const warnings = diagnostics.length - errors;
  if (diagnostics.length === 0) return "no faults";
  return [counted(errors, "error"), counted(warnings, "warning")].filter((text) => text !== "").join(", ");
}

function counted(count: number, noun: string): string {
  return count === 0 ? "" : countOf(count, noun);
}

function coloured(text: string, { severity }: Diagnostic): string {
  const accent: Colour = severity === "error" ? "red" : "yellow";
  return text
    .split("\n")
    .map((line, index) => {
      if (index === 0) return line.replace(`: ${severity}: `, `: ${paint(severity, accent)}: `);
      if (/^ +\| *\^+$/.test(line)) return line.replace(/\^+/, (carets) => paint(carets, accent));
      return line.replace(/^ {2}(help|note):/, (_, label: string) => `  ${paint(label, "cyan")}:`);
    })
    .join("\n");
}
