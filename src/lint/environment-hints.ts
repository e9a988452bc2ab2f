/**
 * Explains words that refer to the environment in a wrong form, or to unset variables: one diagnostic each, with the variable's
 * name.
 */
import type { Diagnostic } from "../corefile/diagnostic.ts";
import { placeOf } from "./unknown-words.ts";

/**
 * Returns the diagnostics with hints added. An error about a word with an unset variable says so, and one about a word such as
 * `$NAME` shows the correct form.
 *
 * @param textOf returns the text of a file
 */
export function explainEnvironment(
  diagnostics: readonly Diagnostic[],
  textOf: (file: string) => string | undefined,
): Diagnostic[] {
  const unset = new Map<string, string[]>();
  for (const { code, span, message } of diagnostics) {
    if (code !== "COREFILE_ENVIRONMENT_UNSET") continue;
    const place = placeOf(span);
    unset.set(place, [...(unset.get(place) ?? []), message]);
  }
  const refused = new Set(
    diagnostics.filter(({ severity }) => severity === "error").map(({ span }) => placeOf(span)),
  );
  return diagnostics.flatMap((diagnostic) => {
    const place = placeOf(diagnostic.span);
    if (diagnostic.code === "COREFILE_ENVIRONMENT_UNSET" && refused.has(place)) return [];
    const notes = diagnostic.severity === "error" ? (unset.get(place) ?? []) : [];
    if (notes.length > 0) return [{ ...diagnostic, notes: [...(diagnostic.notes ?? []), ...notes] }];
    const reference = diagnostic.severity === "error" ? intended(diagnostic, textOf) : undefined;
    return [reference === undefined ? diagnostic : { ...diagnostic, suggestion: reference }];
  });
}

/** `{$NAME}` for a word with `$NAME`, `${NAME}` or `$(NAME)`. */
function intended({ span }: Diagnostic, textOf: (file: string) => string | undefined): string | undefined {
  const line = textOf(span.file)
    ?.split("\n", span.line)
    .at(span.line - 1);
  const word = line?.slice(span.column - 1, span.column - 1 + span.length) ?? "";
  const reference = /(?<!\{)\$(?:\{([A-Za-z_]\w*)\}|\(([A-Za-z_]\w*)\)|([A-Za-z_]\w*))/;
  if (!reference.test(word)) return undefined;
  return word.replace(reference, (_all, braced, round, bare) => `{$${braced ?? round ?? bare}}`);
}
