/** Words that are no directive or option where they stand, and mean something all the same. */
import type { Diagnostic, Span } from "../corefile/diagnostic.ts";
import type { NearWord } from "./near-word.ts";

const UNKNOWN: ReadonlySet<string> = new Set(["COREFILE_UNKNOWN_DIRECTIVE", "PLUGIN_UNKNOWN_PROPERTY"]);

/**
 * The same diagnostics; those about unknown words of which there is a note, by their place, say that instead of a guess.
 * @param near what an unknown word of today's looks like, by place
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
    // A word that looks alike, or the list of all there is, would lead away from the remedy.
    const { expected: _expected, suggestion: _suggestion, ...rest } = diagnostic;
    return { ...rest, notes: [known, ...(diagnostic.notes ?? [])] };
  });
}

/** A word of today comes first. */
function withNearWord(diagnostic: Diagnostic, near: NearWord | undefined): Diagnostic {
  if (near === undefined || diagnostic.suggestion !== undefined) return diagnostic;
  const { expected: _expected, ...rest } = diagnostic;
  return { ...rest, suggestion: near.word, notes: [near.note, ...(diagnostic.notes ?? [])] };
}

/** One text for one place, imports included. */
export function placeOf({ file, line, column, importedAt }: Span): string {
  return `${file}:${line}:${column}${importedAt === undefined ? "" : ` ${placeOf(importedAt)}`}`;
}
