import type { Diagnostic, Span } from "../../corefile/diagnostic.ts";

/** A Corefile with the findings in it and in everything it imports. */
export interface CheckedFile {
  /** The name as given, or "stdin". */
  readonly file: string;
  /** The kind of document that held the Corefile; the server itself only takes plain Corefiles. */
  readonly form?: string;
  /** In the order of the text. */
  readonly diagnostics: readonly Diagnostic[];
  /** Returns the text of this file or of one that it imports. */
  readonly textOf: (file: string) => string | undefined;
  /** Maps a place to the one that editors and reviews show: for a key of a ConfigMap, its place in the YAML. */
  readonly inDocument?: (span: Span) => Span;
}

/** Returns sentences that say what to do about a diagnostic. */
export function remedies({ expected, suggestion, notes = [] }: Diagnostic): string[] {
  return [
    ...(expected === undefined ? [] : [`expected ${expected}`]),
    ...(suggestion === undefined ? [] : [`did you mean '${suggestion}'?`]),
    ...notes,
  ];
}
