/** Explains unknown words that have a known meaning elsewhere. */
import type { Diagnostic, Span } from "../corefile/diagnostic.ts";
import type { NearWord } from "./near-word.ts";

const UNKNOWN: ReadonlySet<string> = new Set(["COREFILE_UNKNOWN_DIRECTIVE", "PLUGIN_UNKNOWN_PROPERTY"]);

/**
 * Returns the diagnostics, with notes in place of guesses for the unknown words that have one.
 * @param near current words that resemble an unknown word, by place
 */
export function explainUnknownWords(
  diagnostics: readonly Diagnostic[],
  near: ReadonlyMap<string, NearWord>,
  ...notes: readonly ReadonlyMap<string, string>[]
): Diagnostic[] {
  return diagnostics.map((diagnostic) => {
    if (!UNKNOWN.has(diagnostic.code)) return diagnostic;
    const place = placeOf(diagnostic.span);
    const known = notes.map((byPlace) => byPlace.get(place)).find((note) => note !== undefined);
    if (known === undefined) return withNearWord(diagnostic, near.get(place));
    // A similar word, or the list of all words, would distract from the remedy.
    const { expected: _expected, suggestion: _suggestion, ...rest } = diagnostic;
    return { ...rest, notes: [known, ...(diagnostic.notes ?? [])] };
  });
}

/** A current word takes precedence. */
function withNearWord(diagnostic: Diagnostic, near: NearWord | undefined): Diagnostic {
  if (near === undefined || diagnostic.suggestion !== undefined) return diagnostic;
  const { expected: _expected, ...rest } = diagnostic;
  return { ...rest, suggestion: near.word, notes: [near.note, ...(diagnostic.notes ?? [])] };
}

/** A text that is unique for each place, imports included. */
export function placeOf({ file, line, column, importedAt }: Span): string {
  return `${file}:${line}:${column}${importedAt === undefined ? "" : ` ${placeOf(importedAt)}`}`;
}
