/** Reading a store that another thread writes to, without ever waiting for it. */
import type { ColumnMemory } from "../../../lib/collections/slab/column-memory.ts";

/** The store was being changed whenever it was looked at. It will be readable in a moment: whoever can wait gives the event loop a turn. */
export class StoreBusyError extends Error {
  override readonly name = "StoreBusyError";

  constructor() {
    super("the cluster is being changed by another thread");
  }
}

/** Answers that are made in vain, because something changed meanwhile. A change takes some 20 microseconds, most answers two. */
const ATTEMPTS = 16;
/** Looks at whether a change is over, some 20 ns each. */
const LOOKS = 1_000;
/** A writer that lost its processor in the middle of a change may be waiting for this one. Milliseconds of each nap. */
const NAP = 0.1;
const NAPS = 20;

export class StateReader {
  readonly #memory: ColumnMemory;
  readonly #forget: () => void;
  #isReading = false;

  /** @param forget drops what was kept of the memory while it was read in vain */
  constructor(memory: ColumnMemory, forget: () => void) {
    this.#memory = memory;
    this.#forget = forget;
  }

  /**
   * What `look` finds in one state. It may be called several times, and must neither do anything nor return what still looks into the store.
   *
   * While it reads, octets may be of no state at all. Then whatever comes of it is thrown away: a result, and an exception likewise. Nor
   * can it run for ever: chains are followed no further than there are places, and what lies in a block is read forwards within its
   * chunk, beyond which reading throws.
   * @throws StoreBusyError and what `look` throws for a whole state
   */
  read<T>(look: () => T): T {
    const memory = this.#memory;
    if (!memory.isReader || this.#isReading) return look();
    this.#isReading = true;
    try {
      let attempts = 0;
      for (let looks = 0; looks < LOOKS && attempts < ATTEMPTS; looks++) {
        if (!memory.beginReading()) continue;
        attempts++;
        try {
          const found = look();
          if (memory.isWhole()) return found;
        } catch (error) {
          if (memory.isWhole()) throw error;
        }
        this.#forget();
      }
    } finally {
      this.#isReading = false;
    }
    throw new StoreBusyError();
  }

  /** The same for callers that cannot come back in a later turn: sleeps while a change goes on, for about 2 ms at most. `undefined` if the change still goes on. */
  tryRead<T>(look: () => T): T | undefined {
    for (let nap = 0; nap <= NAPS; nap++) {
      try {
        return this.read(look);
      } catch (error) {
        if (!(error instanceof StoreBusyError)) throw error;
      }
      if (this.#isReading || !this.#memory.sleep(NAP)) return undefined;
    }
    return undefined;
  }
}
