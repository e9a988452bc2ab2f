/**
 * Names whose answers became outdated while questions were in flight. Each stands for itself and all names below it.
 */
import { hashName, type Name } from "../../dns/name.ts";
import { octetAt } from "../../dns/octets.ts";

/**
 * Bound for the names in the table. Beyond it all earlier questions count as outdated, and their answers are not
 * stored.
 */
const MOST_NAMES = 8_192;

export class OutdatedNames {
  /** When each name became outdated last, by its hash. A collision only means that an answer is not cached. */
  #times = new Map<number, number>();
  #time = 0;
  /** All questions sent before this are outdated. */
  #allBefore = 0;

  /** The time to record when a question is sent. */
  get time(): number {
    return this.#time;
  }

  add(names: readonly Name[]): void {
    this.#time++;
    if (this.#times.size + names.length > MOST_NAMES) {
      this.#times = new Map();
      this.#allBefore = this.#time;
      return;
    }
    for (const { hash } of names) this.#times.set(hash, this.#time);
  }

  /**
   * Whether the answer to a question sent at `askedAt` is outdated. The work depends on the name, not on the number
   * of outdated names.
   */
  covers({ folded }: Name, askedAt: number): boolean {
    return this.coversOctets(folded, 0, folded.length, askedAt);
  }

  /** The same for a name in wire form and lower case. */
  coversOctets(octets: Uint8Array, start: number, end: number, askedAt: number): boolean {
    if (askedAt < this.#allBefore) return true;
    for (let at = start; ; at += octetAt(octets, at) + 1) {
      const time = this.#times.get(hashName(octets, at, end));
      if (time !== undefined && time > askedAt) return true;
      if (octetAt(octets, at) === 0) return false;
    }
  }

  /** Called when no question is in flight any more. */
  clear(): void {
    // A cleared map keeps its old table alive.
    if (this.#times.size > 0) this.#times = new Map();
  }
}
