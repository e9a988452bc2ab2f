/** Logs that a bound on connections was reached. */
import type { ConnectionBudget } from "../../transports/connection-budget.ts";

/** Logs each bound once, so that a flood of connections does not flood the log. */
export class Crowds {
  readonly #descriptors: number;
  readonly #tell: ((text: string) => void) | undefined;
  /** Labels of listeners with a bound of their own, and "" for those of the process. */
  readonly #told = new Set<string>();

  constructor(descriptors: number, tell: ((text: string) => void) | undefined) {
    this.#descriptors = descriptors;
    this.#tell = tell;
  }

  /**
   * A connection to `listener` was closed because there were too many.
   * @param own the listener's own bound, if that was reached
   */
  note({ limits, octets }: ConnectionBudget, listener: string, own: number | undefined): void {
    const bound = own === undefined ? "" : listener;
    if (this.#told.has(bound)) return;
    this.#told.add(bound);
    const closing = "closing the longest idle ones";
    if (own !== undefined) this.#tell?.(`more than ${own} connections to ${listener}: ${closing}`);
    else if (octets > limits.maxOctets / 2)
      this.#tell?.(
        `more connections than the memory limit has room for (${Math.round(octets / 2 ** 20)} MiB): ${closing}`,
      );
    else
      this.#tell?.(
        `more than ${limits.maxConnections} connections: ${closing} (the process may have ${this.#descriptors} files open)`,
      );
  }
}
