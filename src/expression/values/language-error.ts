/** What is wrong with a text in one of the two small languages, and where. */

/** `compile`: the text can never be run. `run`: it failed for these values. */
export type Stage = "compile" | "run";

/** Where something stands in the text: `[start, end)` in UTF-16 code units. */
export interface Extent {
  readonly start: number;
  readonly end: number;
}

export class LanguageError extends Error {
  override readonly name = "LanguageError";
  readonly stage: Stage;
  readonly start: number;
  readonly end: number;
  /** The known word nearest to what was found. */
  readonly suggestion: string | undefined;

  constructor(stage: Stage, message: string, { start, end }: Extent, suggestion?: string) {
    super(message);
    this.stage = stage;
    this.start = start;
    this.end = end;
    this.suggestion = suggestion;
  }
}

/** What went wrong while a text was run, before it is known where: the place is put on where it passes by. */
export class RunFault extends Error {
  override readonly name = "RunFault";
}

/** What is wrong with arguments or a number, before it is known where it stands. */
export class Misuse {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}
