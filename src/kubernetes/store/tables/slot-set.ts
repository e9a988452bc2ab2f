/** A few slots among many, side by side. */
import type { Column, ColumnMemory } from "../../../lib/collections/slab/column-memory.ts";
import type { Slot } from "./block-table.ts";

export class SlotSet {
  readonly #list: Column<Int32Array>;
  readonly #size: Column<Int32Array>;
  /** Where each stands in the list, for the one who writes. */
  readonly #places = new Map<Slot, number>();

  constructor(memory: ColumnMemory) {
    this.#list = memory.int32();
    this.#size = memory.int32(1);
  }

  get octets(): number {
    return this.#list.octets;
  }

  /** Whether there is none, which may be out of date where another thread writes. */
  get isEmpty(): boolean {
    return this.#size.cells[0] === 0;
  }

  add(slot: Slot): void {
    if (this.#places.has(slot)) return;
    const place = this.#places.size;
    this.#list.reserve(place);
    this.#list.cells[place] = slot;
    this.#places.set(slot, place);
    this.#size.cells[0] = place + 1;
  }

  delete(slot: Slot): void {
    const place = this.#places.get(slot);
    if (place === undefined) return;
    this.#places.delete(slot);
    const last = this.#places.size;
    const moved = this.#list.cells[last] ?? 0;
    if (last !== place) {
      this.#list.cells[place] = moved;
      this.#places.set(moved, place);
    }
    this.#size.cells[0] = last;
  }

  *values(): Generator<Slot> {
    for (let at = 0; at < (this.#size.cells[0] ?? 0); at++) yield this.#list.cells[at] ?? 0;
  }
}
