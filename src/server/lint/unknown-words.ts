/** Words that are no directive or option where they stand, and mean something all the same. */
import type { Diagnostic, Span } from "../../corefile/diagnostic.ts";

const UNKNOWN: ReadonlySet<string> = new Set(["COREFILE_UNKNOWN_DIRECTIVE", "PLUGIN_UNKNOWN_PROPERTY"]);

/** The same diagnostics; those about unknown words of which there is a note, by their place, say that instead of a guess. */
export function explainUnknownWords(
  diagnostics: readonly Diagnostic[],
  ...notes: readonly ReadonlyMap<string, string>[]
): Diagnostic[] {
  return diagnostics.map((diagnostic) => {
    if (!UNKNOWN.has(diagnostic.code)) return diagnostic;
    const place = placeOf(diagnostic.span);
    const known = notes.map((byPlace) => byPlace.get(place)).find((note) => note !== undefined);
    if (known === undefined) return diagnostic;
    // A word that looks alike, or the list of all there is, would lead away from the remedy.
    const { expected: _expected, suggestion: _suggestion, ...rest } = diagnostic;
    return { ...rest, notes: [known, ...(diagnostic.notes ?? [])] };
  });
}

/** One text for one place, imports included. */
export function placeOf({ file, line, column, importedAt }: Span): string {
  return `${file}:${line}:${column}${importedAt === undefined ? "" : ` ${placeOf(importedAt)}`}`;
}
