/** Who may change a slab, and what becomes of it when a change was not finished or when its memory is damaged. */
import type { ReadGuard } from "../../lib/collections/slab/read-guard.ts";
import { type SharedLock, Taken } from "../../lib/collections/slab/shared-lock.ts";

export class SlabGate {
  /** Whether other threads have the slab, too. One alone neither locks nor counts. */
  isShared = false;
  /** Whether its memory was given back: nothing is stored any more. */
  isReleased = false;
  /** Hears why the slab was emptied. */
  onEmptied: (reason: Error) => void = () => undefined;
  readonly #guard: ReadGuard;
  readonly #lock: SharedLock;
  readonly #clear: () => void;

  /** @param clear empties the slab, whatever its memory holds */
  constructor(guard: ReadGuard, lock: SharedLock, clear: () => void) {
    this.#guard = guard;
    this.#lock = lock;
    this.#clear = clear;
  }

  /** Begins a change. False where another thread writes and does not come to an end. */
  enter(): boolean {
    if (!this.isShared) return !this.isReleased;
    const taken = this.#lock.take();
    if (taken === Taken.ABANDONED) this.mend(new Error("a thread ended while it wrote"));
    return taken !== Taken.NOT;
  }

  leave(): void {
    if (this.isShared) this.#lock.release();
  }

  /** Before and after a change to what others may be reading. */
  turn(region: number): void {
    if (this.isShared) this.#guard.turn(region);
  }

  /**
   * Empties the slab. To be called between {@link enter} and {@link leave}, for whatever ended a change before its end: half of one is no state that
   * another could begin from.
   */
  mend(error: unknown): void {
    this.#guard.reset();
    this.#clear();
    this.#guard.reset();
    this.onEmptied(error instanceof Error ? error : new Error(String(error)));
  }
}
