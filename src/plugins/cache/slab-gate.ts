/** Guards changes to a slab, and empties it after an unfinished change or when its memory is damaged. */
import type { ReadGuard } from "../../lib/collections/slab/read-guard.ts";
import { type SharedLock, Taken } from "../../lib/collections/slab/shared-lock.ts";

export class SlabGate {
  /** Whether other threads use the slab, too. An unshared slab needs neither lock nor counters. */
  isShared = false;
  /** Whether the memory was released: nothing is stored any more. */
  isReleased = false;
  /** Receives the reason why the slab was emptied. */
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

  /** Begins a change. Returns false if another thread holds the lock for too long. */
  enter(): boolean {
    if (!this.isShared) return !this.isReleased;
    const taken = this.#lock.take();
    if (taken === Taken.ABANDONED) this.mend(new Error("a thread ended while it wrote"));
    return taken !== Taken.NOT;
  }

  leave(): void {
    if (this.isShared) this.#lock.release();
  }

  /** Call before and after a change to memory that other threads may be reading. */
  turn(region: number): void {
    if (this.isShared) this.#guard.turn(region);
  }

  /**
   * Empties the slab. Call it between {@link enter} and {@link leave} after a change that failed midway: the next
   * change could not start from half of one.
   */
  mend(error: unknown): void {
    this.#guard.reset();
    this.#clear();
    this.#guard.reset();
    this.onEmptied(error instanceof Error ? error : new Error(String(error)));
  }
}
