/** Which slots have an address, for any number of both: 16 octets for each pair of them, none of them an object. */
import { type Column, ColumnMemory } from "../../../lib/collections/slab/column-memory.ts";
import { GrowingIndex, NO_ENTRY } from "../../../lib/collections/slab/growing-index.ts";
import type { AddressKey } from "../../objects/addresses.ts";
import type { AddressPrefixes } from "./address-prefixes.ts";
import { freeMark, markedFree, type Slot } from "./block-table.ts";
import { hashText, spread } from "./hashes.ts";

/** A pair of an address and a slot: {@link NO_ENTRY} for none. */
export type AddressEntry = number;

export class AddressSlots {
  readonly #index: GrowingIndex;
  /** Of each entry: twice its slot, and one more for an address of IPv6; of a free one the next free one, as a negative number. */
  readonly #slots: Column<Int32Array>;
  #end = 0;
  #firstFree = NO_ENTRY;
  #size = 0;
  #ipv4 = 0;
  readonly #prefixes: AddressPrefixes | undefined;

  /**
   * @param memory where it lies
   * @param prefixes told of each pair that comes and goes
   */
  constructor(memory: ColumnMemory = new ColumnMemory(), prefixes?: AddressPrefixes) {
    this.#prefixes = prefixes;
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
   * The slots of an address, in the order in which they came. For one of IPv6 those of others come with them that have the same hash: they have to be
   * looked at.
   */
  first(key: AddressKey): AddressEntry {
    return this.#from(this.#index.first(hashKey(key)), familyOf(key));
  }

  after(entry: AddressEntry): AddressEntry {
    return this.#from(this.#index.after(entry), (this.#slots.cells[entry] ?? 0) & 1);
  }

  slot(entry: AddressEntry): Slot {
    return (this.#slots.cells[entry] ?? 0) >> 1;
  }

  /** The pair must not be there yet. */
  add(key: AddressKey, slot: Slot): void {
    let entry = this.#firstFree;
    if (entry === NO_ENTRY) {
      entry = this.#end++;
      this.#slots.reserve(entry);
    } else this.#firstFree = markedFree(this.#slots.cells[entry] ?? 0);
    this.#slots.cells[entry] = 2 * slot + familyOf(key);
    this.#index.add(entry, hashKey(key));
    this.#size++;
    if (typeof key === "number") this.#ipv4++;
    this.#prefixes?.add(key);
  }

  delete(key: AddressKey, slot: Slot): void {
    const index = this.#index;
    const cell = 2 * slot + familyOf(key);
    let entry = index.first(hashKey(key));
    // Of two addresses of IPv6 with one hash either entry will do: both lead to this slot.
    while (entry !== NO_ENTRY && this.#slots.cells[entry] !== cell) entry = index.after(entry);
    if (entry === NO_ENTRY) return;
    index.remove(entry);
    this.#slots.cells[entry] = freeMark(this.#firstFree);
    this.#firstFree = entry;
    this.#size--;
    if (typeof key === "number") this.#ipv4--;
    this.#prefixes?.delete(key);
  }

  /** Passes over what has the same hash and is of the other family: an address of IPv6 can be found for the hash of any of IPv4. */
  #from(start: AddressEntry, family: number): AddressEntry {
    const slots = this.#slots.cells;
    let entry = start;
    // A reader may be led round a circle while another thread writes: the bound ends it.
    let left = slots.length;
    while (entry !== NO_ENTRY && ((slots[entry] ?? 0) & 1) !== family && left-- > 0)
      entry = this.#index.after(entry);
    return left < 0 ? NO_ENTRY : entry;
  }
}

function familyOf(key: AddressKey): 0 | 1 {
  return typeof key === "number" ? 0 : 1;
}

/** Different for different addresses of IPv4. */
function hashKey(key: AddressKey): number {
  return typeof key === "number" ? spread(key) : hashText(0, key);
}
