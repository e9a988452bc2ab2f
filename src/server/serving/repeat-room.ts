/** The most answers that one listener remembers for repetition. */
export const SLOTS = 4_096;
/** A head, the query without its id, and the reply. */
export const SLOT_OCTETS = 320;
const TABLE_OCTETS = SLOTS * (SLOT_OCTETS + 2 * 4);
/** Listeners that may have a table. Only a few listeners of a Corefile are busy. */
const MOST_TABLES = 8;

/**
 * Memory for repeated answers, shared by the listeners of one thread. Listeners above the bound send all queries
 * through the chain.
 */
export class RepeatRoom {
  #taken = 0;

  /** An upper limit in bytes: pages that were never written take no memory. */
  get octets(): number {
    return this.#taken * TABLE_OCTETS;
  }

  take(): SharedArrayBuffer | undefined {
    if (this.#taken === MOST_TABLES) return undefined;
    this.#taken++;
    // Shared memory that is not shared: V8 counts other buffers towards the growth of its heap.
    return new SharedArrayBuffer(TABLE_OCTETS);
  }

  giveBack(): void {
    this.#taken--;
  }
}
