/** Something in a manifest that is not as it should be, with its place. */
export interface ManifestProblem {
  /**
   * - `error`: a document (or item of a list) is skipped, or a file or folder cannot be read.
   * - `warning`: everything is used, but probably not to the effect that its author had in mind.
   */
  readonly severity: "error" | "warning";
  /** The path as it was found below the configured one. */
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  readonly message: string;
}

/** `FILE:LINE: MESSAGE`, as compilers and editors write it. */
export function formatManifestProblem({ file, line, message }: ManifestProblem): string {
  return `${file}:${line}: ${message}`;
}
