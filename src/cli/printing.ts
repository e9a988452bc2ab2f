/** What becomes of what commands print when nobody reads it, or when it cannot be written. */

/** Where a command prints to: standard output and standard error. */
export interface PrintStream {
  write(text: string, callback?: (error?: Error | null) => void): boolean;
  on(event: "error", listener: (error: Error) => void): unknown;
}

/** Nothing of a command was written where it was to go. */
const CANNOT_WRITE = 2;

/**
 * Has commands outlive a reader that goes away, as `head` does once it has its lines: that is no fault of theirs. They go on to their end
 * and their own exit code. A disk that is full is a fault, and is told.
 */
export class Printing {
  readonly #streams: readonly PrintStream[];
  #fault: Error | undefined;

  constructor(...streams: readonly PrintStream[]) {
    this.#streams = streams;
    for (const stream of streams)
      stream.on("error", (error) => {
        if (!("code" in error && error.code === "EPIPE")) this.#fault ??= error;
      });
  }

  /** Waits until all is printed. @returns the exit code, which is 2 where it could not be */
  async end(code: number): Promise<number> {
    await this.#flush();
    if (this.#fault === undefined) return code;
    this.#streams.at(-1)?.write(`cannot write what is to be printed: ${this.#fault.message}\n`);
    await this.#flush();
    return CANNOT_WRITE;
  }

  async #flush(): Promise<void> {
    for (const stream of this.#streams)
      await new Promise<void>((resolve) => {
        stream.write("", () => resolve());
      });
  }
}
