/**
 * Serves requests one by one, each in a turn of the event loop of its own: however many arrive at once, DNS queries
 * are answered in between.
 */
export class Turns {
  readonly #most: number;
  readonly #waiting: (() => void)[] = [];

  /** @param most that may wait */
  constructor(most: number) {
    this.#most = most;
  }

  /** @returns `undefined` if too many wait already, else a promise that resolves in the turn */
  take(): Promise<void> | undefined {
    if (this.#waiting.length >= this.#most) return undefined;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    if (this.#waiting.length === 1) setImmediate(this.#next);
    return promise;
  }

  readonly #next = (): void => {
    this.#waiting.shift()?.();
    if (this.#waiting.length > 0) setImmediate(this.#next);
  };
}
