/** Standard output and error of commands, when the reader is gone or a write fails. */

/** An output stream of a command: standard output or standard error. */
export interface PrintStream {
  write(text: string, callback?: (error?: Error | null) => void): boolean;
  on(event: "error", listener: (error: Error) => void): unknown;
}

/** Output could not be written. */
const CANNOT_WRITE = 2;

/**
 * Lets commands outlive a reader that goes away, as `head` does once it has its lines. That is not an error: they run to their end
 * and their own exit code. A full disk is an error and is reported.
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

  /** Waits until everything is printed. @returns the exit code, or 2 if printing failed */
  async end(code: number): Promise<number> {
    await this.#flush();
    if (this.#fault === undefined) return code;
    this.#streams.at(-1)?.write(`cannot write the output: ${this.#fault.message}\n`);
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
