import type { Diagnostic, Span } from "../../corefile/diagnostic.ts";

/** A Corefile with what was found in it and in all that it imports. */
export interface CheckedFile {
  /** As it was named, or "stdin". */
  readonly file: string;
  /** What the Corefile was found in: the server takes only a Corefile on its own. */
  readonly form?: string;
  /** In the order of the text. */
  readonly diagnostics: readonly Diagnostic[];
  /** Text of this file or of one that it imports. */
  readonly textOf: (file: string) => string | undefined;
  /** A place as editors and reviews find it: of a key in a ConfigMap, that in the YAML. */
  readonly inDocument?: (span: Span) => Span;
}

/** What to do about a diagnostic, in sentences. */
export function remedies({ expected, suggestion, notes = [] }: Diagnostic): string[] {
  return [
    ...(expected === undefined ? [] : [`expected ${expected}`]),
    ...(suggestion === undefined ? [] : [`did you mean '${suggestion}'?`]),
    ...notes,
  ];
}
