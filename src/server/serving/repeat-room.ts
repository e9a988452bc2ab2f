/** Answers that one listener remembers at the most, to give them again. */
export const SLOTS = 4_096;
/** A head, the query without its id, and the reply. */
export const SLOT_OCTETS = 320;
const TABLE_OCTETS = SLOTS * (SLOT_OCTETS + 2 * 4);
/** Listeners that may have so much. A Corefile has few that are asked much. */
const MOST_TABLES = 8;

/** Memory for answers that are given again, of the listeners of one thread: those that come too late have all queries go through the chain. */
export class RepeatRoom {
  #taken = 0;

  /** Octets at the most: memory that nothing was written to is none. */
  get octets(): number {
    return this.#taken * TABLE_OCTETS;
  }

  take(): SharedArrayBuffer | undefined {
    if (this.#taken === MOST_TABLES) return undefined;
    this.#taken++;
    // Shared memory, which nobody else has: V8 takes other buffers for a heap that has grown.
    return new SharedArrayBuffer(TABLE_OCTETS);
  }

  giveBack(): void {
    this.#taken--;
  }
}
