/** Pending queries of one configuration. */
export class InFlight {
  #count = 0;
  #idle: (() => void) | undefined;

  get count(): number {
    return this.#count;
  }

  enter(): void {
    this.#count++;
  }

  leave(): void {
    this.#count--;
    if (this.#count === 0) this.#idle?.();
  }

  /** Resolves when no query is pending. */
  drained(): Promise<void> {
    if (this.#count === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idle = resolve;
    });
  }
}
