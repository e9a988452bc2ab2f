/**
 * Flags of each entry, one byte per entry, kept beside the blocks. Readers write them, too, without waiting for a
 * lock.
 */
import { LEAST_UNITS } from "../../lib/collections/slab/block-memory.ts";

/** The entry was read since the hand last passed. */
const USED = 1;
/** A refresh in the background is under way. */
const REFRESHING = 2;

/** No two entries begin in the same pair of units. */
const SHIFT = Math.log2(LEAST_UNITS);

export class EntryMarks {
  readonly #marks: Uint8Array;

  /** @param marks as many bytes as `marksFor` returns */
  constructor(marks: Uint8Array) {
    this.#marks = marks;
  }

  /** Marks an entry as used. */
  use(unit: number): void {
    const mark = this.#marks[unit >> SHIFT] as number;
    if ((mark & USED) === 0) this.#marks[unit >> SHIFT] = mark | USED;
  }

  wasUsed(unit: number): boolean {
    return ((this.#marks[unit >> SHIFT] as number) & USED) !== 0;
  }

  forgetUse(unit: number): void {
    this.#marks[unit >> SHIFT] = (this.#marks[unit >> SHIFT] as number) & ~USED;
  }

  isRefreshing(unit: number): boolean {
    return ((this.#marks[unit >> SHIFT] as number) & REFRESHING) !== 0;
  }

  setRefreshing(unit: number, refreshing: boolean): void {
    const others = (this.#marks[unit >> SHIFT] as number) & ~REFRESHING;
    this.#marks[unit >> SHIFT] = refreshing ? others | REFRESHING : others;
  }

  /** Resets the marks of a new entry. */
  clear(unit: number): void {
    this.#marks[unit >> SHIFT] = 0;
  }
}
