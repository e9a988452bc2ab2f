/** Which slots have an address, for any number of both: 16 octets for each pair of them, none of them an object. */
import { type Column, ColumnMemory } from "../../lib/slab/column-memory.ts";
import { GrowingIndex, NO_ENTRY } from "../../lib/slab/growing-index.ts";
import type { AddressKey } from "../objects/addresses.ts";
import { freeMark, markedFree, type Slot } from "./block-table.ts";
import { hashText, spread } from "./hashes.ts";

/** A pair of an address and a slot: {@link NO_ENTRY} for none. */
export type AddressEntry = number;

export class AddressSlots {
  readonly #index: GrowingIndex;
  /** Of each entry: its slot; of a free one the next free one, as a negative number. */
  readonly #slots: Column<Int32Array>;
  #end = 0;
  #firstFree = NO_ENTRY;
  #size = 0;
  #ipv4 = 0;

  /** @param memory where it lies */
  constructor(memory: ColumnMemory = new ColumnMemory()) {
    this.#index = new GrowingIndex(memory);
    this.#slots = memory.int32();
  }

  /** How many pairs there are. */
  get size(): number {
    return this.#size;
  }

  /** How many of them have an address of IPv4; the others have one of IPv6. */
  get ipv4Size(): number {
    return this.#ipv4;
  }

  /** No chain of entries is longer. */
  get places(): number {
    return this.#slots.cells.length;
  }

  get octets(): number {
    return this.#index.octets + this.#slots.octets;
  }

  /**
   * The slots of an address, in the order in which they came, and with them those of others with the same hash: IPv6 addresses have to be
   * looked at.
   */
  first(key: AddressKey): AddressEntry {
    return this.#index.first(hashKey(key));
  }

  after(entry: AddressEntry): AddressEntry {
    return this.#index.after(entry);
  }

  slot(entry: AddressEntry): Slot {
    return this.#slots.cells[entry] ?? 0;
  }

  /** The pair must not be there yet. */
  add(key: AddressKey, slot: Slot): void {
    let entry = this.#firstFree;
    if (entry === NO_ENTRY) {
      entry = this.#end++;
      this.#slots.reserve(entry);
    } else this.#firstFree = markedFree(this.#slots.cells[entry] ?? 0);
    this.#slots.cells[entry] = slot;
    this.#index.add(entry, hashKey(key));
    this.#size++;
    if (typeof key === "number") this.#ipv4++;
  }

  delete(key: AddressKey, slot: Slot): void {
    const index = this.#index;
    let entry = index.first(hashKey(key));
    // Of two addresses with one hash either entry will do: both lead to this slot.
    while (entry !== NO_ENTRY && this.#slots.cells[entry] !== slot) entry = index.after(entry);
    if (entry === NO_ENTRY) return;
    index.remove(entry);
    this.#slots.cells[entry] = freeMark(this.#firstFree);
    this.#firstFree = entry;
    this.#size--;
    if (typeof key === "number") this.#ipv4--;
  }
}

/** Different for different addresses of IPv4. */
function hashKey(key: AddressKey): number {
  return typeof key === "number" ? spread(key) : hashText(0, key);
}
