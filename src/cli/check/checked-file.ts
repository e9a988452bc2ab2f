import type { Diagnostic } from "../../corefile/diagnostic.ts";

/** A Corefile with what was found in it and in all that it imports. */
export interface CheckedFile {
  /** As it was named, or "stdin". */
  readonly file: string;
  /** What the Corefile was found in: the server takes only a Corefile on its own. */
  readonly form?: "YAML";
  /** In the order of the text. */
  readonly diagnostics: readonly Diagnostic[];
  /** Text of this file or of one that it imports. */
  readonly textOf: (file: string) => string | undefined;
}

/** What to do about a diagnostic, in sentences. */
export function remedies({ expected, suggestion, notes = [] }: Diagnostic): string[] {
  return [
    ...(expected === undefined ? [] : [`expected ${expected}`]),
    ...(suggestion === undefined ? [] : [`did you mean '${suggestion}'?`]),
    ...notes,
  ];
}
