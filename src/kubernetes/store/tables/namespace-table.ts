/**
 * Namespaces as octets, found by name. A place stands for a namespace that has been seen, or that objects name which are there: so a place
 * is held by what stands in it.
 */
import type { OctetArena } from "../../../lib/collections/octet-arena.ts";
import type { Column, ColumnMemory } from "../../../lib/collections/slab/column-memory.ts";
import { GrowingIndex, NO_ENTRY } from "../../../lib/collections/slab/growing-index.ts";
import type { Identity } from "../../objects/objects.ts";
import { BlockTable, type Slot } from "./block-table.ts";
import { hashLabel, hashText } from "./hashes.ts";
import { isLabel, isText, RecentTexts, writeLabel } from "./short-text.ts";
import { slotListing, type TableListing } from "./table-listing.ts";

export class NamespaceTable {
  readonly #blocks: BlockTable;
  readonly #byName: GrowingIndex;
  /** 1 for a namespace that has been seen. */
  readonly #exists: Column<Uint8Array>;
  /** The first of its services, and how many there are. */
  readonly #first: Column<Int32Array>;
  readonly #counts: Column<Int32Array>;
  readonly #texts = new RecentTexts();

  constructor(memory: ColumnMemory, arena: OctetArena) {
    this.#blocks = new BlockTable(memory, arena);
    this.#byName = new GrowingIndex(memory);
    this.#exists = memory.uint8();
    this.#first = memory.int32();
    this.#counts = memory.int32();
  }

  /** Without the blocks. */
  get octets(): number {
    const columns = this.#exists.octets + this.#first.octets + this.#counts.octets;
    return columns + this.#blocks.octets + this.#byName.octets;
  }

  /** @returns {@link NO_ENTRY} for one that is neither seen nor named */
  find(name: string): Slot {
    const index = this.#byName;
    for (let slot = index.first(hashText(0, name)); slot !== NO_ENTRY; slot = index.after(slot))
      if (this.isNamed(slot, name)) return slot;
    return NO_ENTRY;
  }

  /** The same for a label: see {@link ServiceLabels}. */
  findLabel(octets: Uint8Array, at: number): Slot {
    const index = this.#byName;
    const blocks = this.#blocks;
    let slot = index.first(hashLabel(0, octets, at));
    for (; slot !== NO_ENTRY; slot = index.after(slot)) {
      const start = blocks.start(slot);
      if (isLabel(blocks.buffer(slot), start, start + blocks.length(slot), octets, at)) break;
    }
    return slot;
  }

  /** There must be none of that name. */
  add(name: string): Slot {
    const slot = this.#blocks.add(Buffer.from(name));
    this.#byName.add(slot, hashText(0, name));
    for (const column of [this.#exists, this.#first, this.#counts]) column.reserve(slot);
    this.#exists.cells[slot] = 0;
    this.#first.cells[slot] = NO_ENTRY;
    this.#counts.cells[slot] = 0;
    return slot;
  }

  delete(slot: Slot): void {
    this.#byName.remove(slot);
    this.#blocks.delete(slot);
  }

  nameOf(slot: Slot): string {
    const blocks = this.#blocks;
    const start = blocks.start(slot);
    return this.#texts.read(slot, blocks.buffer(slot), start, start + blocks.length(slot));
  }

  /** Writes the name as a label. @returns where it ends, -1 where it is not a label */
  writeLabel(slot: Slot, to: Uint8Array, at: number): number {
    const blocks = this.#blocks;
    return writeLabel(blocks.buffer(slot), blocks.start(slot), blocks.length(slot), to, at);
  }

  isNamed(slot: Slot, name: string): boolean {
    const blocks = this.#blocks;
    const start = blocks.start(slot);
    return isText(blocks.buffer(slot), start, start + blocks.length(slot), name);
  }

  exists(slot: Slot): boolean {
    return this.#exists.cells[slot] === 1;
  }

  setExists(slot: Slot, exists: boolean): void {
    this.#exists.cells[slot] = exists ? 1 : 0;
  }

  /** Services that are there or that slices name. */
  count(slot: Slot): number {
    return this.#counts.cells[slot] ?? 0;
  }

  addCount(slot: Slot, difference: number): void {
    this.#counts.cells[slot] = this.count(slot) + difference;
  }

  firstService(slot: Slot): Slot {
    return this.#first.cells[slot] ?? NO_ENTRY;
  }

  setFirstService(slot: Slot, service: Slot): void {
    this.#first.cells[slot] = service;
  }

  /** Those that have been seen. They may come and go meanwhile. */
  *existing(): Generator<Slot> {
    for (const slot of this.#blocks.slots()) if (this.exists(slot)) yield slot;
  }

  listing(): TableListing {
    return slotListing(
      this.#blocks,
      ({ name }) => this.find(name),
      (slot): Identity | undefined =>
        this.exists(slot) ? { namespace: "", name: this.nameOf(slot) } : undefined,
    );
  }
}
