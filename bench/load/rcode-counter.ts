import { rcodeName } from "../../src/dns/index.ts";

/** Counts answers by rcode, without a string for each. */
export class RcodeCounter {
  readonly #counts = new Float64Array(16);

  /** @param message a reply of 12 octets or more */
  add(message: Uint8Array): void {
    const rcode = (message[3] ?? 0) & 0xf;
    this.#counts[rcode] = (this.#counts[rcode] ?? 0) + 1;
  }

  get byName(): Record<string, number> {
    return Object.fromEntries(
      [...this.#counts.entries()]
        .filter(([, count]) => count > 0)
        .map(([rcode, count]) => [rcodeName(rcode), count]),
    );
  }
}
