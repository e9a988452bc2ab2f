/** Lets only so many transfers go on at one time: a catalog may bring thousands of zones at once. */

/** Each takes a connection, and memory for the messages that have arrived. */
const TOGETHER = 64;

export class TransferGate {
  readonly #waiting: (() => void)[] = [];
  #inside = 0;

  /** Resolves when it is the caller's turn. Who went in has to call what it resolves to. */
  async enter(): Promise<() => void> {
    if (this.#inside < TOGETHER) this.#inside++;
    // The place is handed on by who leaves.
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return () => {
      const next = this.#waiting.shift();
      if (next === undefined) this.#inside--;
      else next();
    };
  }
}
