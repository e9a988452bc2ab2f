/** Names whose answers became outdated while questions were on their way. Each stands for itself and all below it. */
import { hashName, type Name } from "../../dns/name.ts";
import { octetAt } from "../../dns/octets.ts";

/** Names that are kept apart; with more, all that was asked before is taken for outdated, and not kept when it comes. */
const MOST_NAMES = 8_192;

export class OutdatedNames {
  /** By the hash of a name, when it became outdated last. That another name has the same hash costs an answer that might have been kept. */
  #times = new Map<number, number>();
  #time = 0;
  /** Whatever was asked before. */
  #allBefore = 0;

  /** To be noted for a question as it is asked. */
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

  /** Whether the answer to a question that was asked then is outdated. The work depends on the name, not on how many are outdated. */
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

  /** No question is on its way any more. */
  clear(): void {
    // A map that is cleared keeps the table from before alive.
    if (this.#times.size > 0) this.#times = new Map();
  }
}
