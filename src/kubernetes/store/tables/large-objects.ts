/**
 * The few objects that no block has room for. In the place of such an object stands a stamp, and the object itself goes to other threads as
 * a message: whoever finds a stamp whose object has not come yet waits for it.
 */
import type { Slot } from "./block-table.ts";
import { StoreBusyError } from "./state-reader.ts";

/** A large object on its way to other threads; `undefined` for one that is gone. */
export interface LargeObject<T> {
  readonly slot: Slot;
  readonly stamp: number;
  readonly object: T | undefined;
}

export class LargeObjects<T> {
  readonly #objects = new Map<Slot, { readonly stamp: number; readonly object: T }>();
  #stamp = 0;
  /** Called with each that comes or goes. */
  told: ((change: LargeObject<T>) => void) | undefined;

  /** @returns the stamp that stands for it */
  put(slot: Slot, object: T): number {
    const stamp = (this.#stamp + 1) | 0;
    this.#stamp = stamp;
    this.#objects.set(slot, { stamp, object });
    this.told?.({ slot, stamp, object });
    return stamp;
  }

  delete(slot: Slot): void {
    if (this.#objects.size === 0 || !this.#objects.delete(slot)) return;
    this.told?.({ slot, stamp: 0, object: undefined });
  }

  /** @throws StoreBusyError where it has not come yet */
  get(slot: Slot, stamp: number): T {
    const known = this.#objects.get(slot);
    if (known?.stamp !== stamp) throw new StoreBusyError();
    return known.object;
  }

  /** All of them, for a thread that is new. */
  get all(): LargeObject<T>[] {
    return Array.from(this.#objects, ([slot, { stamp, object }]) => ({ slot, stamp, object }));
  }

  /** One of another thread's. */
  receive({ slot, stamp, object }: LargeObject<T>): void {
    if (object === undefined) this.#objects.delete(slot);
    else this.#objects.set(slot, { stamp, object });
  }

  clear(): void {
    this.#objects.clear();
  }
}
