/** Limits simultaneous transfers: a catalog may add thousands of zones at once. */

/** Each takes a connection, and memory for received messages. */
const TOGETHER = 64;

export class TransferGate {
  readonly #waiting: (() => void)[] = [];
  #inside = 0;

  /** Resolves when it is the caller's turn. The caller must call the resolved function at the end. */
  async enter(): Promise<() => void> {
    if (this.#inside < TOGETHER) this.#inside++;
    // The leaving caller hands its place on.
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return () => {
      const next = this.#waiting.shift();
      if (next === undefined) this.#inside--;
      else next();
    };
  }
}
