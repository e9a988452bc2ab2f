/** A fault of a text in one of the two small languages, with its place. */

/** `compile`: the text can never be run. `run`: it failed for these values. */
export type Stage = "compile" | "run";

/** A range of the text: `[start, end)` in UTF-16 code units. */
export interface Extent {
  readonly start: number;
  readonly end: number;
}

export class LanguageError extends Error {
  override readonly name = "LanguageError";
  readonly stage: Stage;
  readonly start: number;
  readonly end: number;
  /** The known word most similar to the one found. */
  readonly suggestion: string | undefined;

  constructor(stage: Stage, message: string, { start, end }: Extent, suggestion?: string) {
    super(message);
    this.stage = stage;
    this.start = start;
    this.end = end;
    this.suggestion = suggestion;
  }
}

/** A fault at run time without a place, which the callers add. */
export class RunFault extends Error {
  override readonly name = "RunFault";
}

/** A fault of arguments, or of their number, without a place. */
export class Misuse {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}
