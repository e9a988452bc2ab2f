/** Runs of bytes that many entries share, each kept once and counted. Their numbers fit into a column. An unused run is freed. */
import { OctetArena } from "../../../lib/collections/octet-arena.ts";
import { ColumnMemory } from "../../../lib/collections/slab/column-memory.ts";
import { GrowingIndex, NO_ENTRY, withRoom } from "../../../lib/collections/slab/growing-index.ts";
import { BlockTable, type Slot } from "./block-table.ts";
import { hashOctets } from "./hashes.ts";

export class CountedOctets {
  readonly #blocks: BlockTable;
  readonly #byContent: GrowingIndex;
  /** For the one who writes. */
  #holders: Int32Array = new Int32Array(0);

  /**
   * @param memory where it lies
   * @param arena what the runs lie in
   */
  constructor(memory: ColumnMemory = new ColumnMemory(), arena: OctetArena = new OctetArena(memory)) {
    this.#blocks = new BlockTable(memory, arena);
    this.#byContent = new GrowingIndex(memory);
  }

  /** How many there are. */
  get size(): number {
    return this.#blocks.size;
  }

  /** Without the arena. */
  get octets(): number {
    return this.#blocks.octets + this.#byContent.octets + this.#holders.byteLength;
  }

  /** The number of a run that is in use, else {@link NO_ENTRY}. */
  find(octets: Uint8Array): Slot {
    const index = this.#byContent;
    for (let slot = index.first(hashOctets(octets)); slot !== NO_ENTRY; slot = index.after(slot))
      if (this.#blocks.equals(slot, octets)) return slot;
    return NO_ENTRY;
  }

  /** Each call wants a {@link release}. @returns its number until then */
  hold(octets: Uint8Array): Slot {
    let slot = this.find(octets);
    if (slot === NO_ENTRY) {
      slot = this.#blocks.add(octets);
      this.#byContent.add(slot, hashOctets(octets));
      this.#holders = withRoom(this.#holders, slot);
      this.#holders[slot] = 0;
    }
    this.#holders[slot] = (this.#holders[slot] ?? 0) + 1;
    return slot;
  }

  release(slot: Slot): void {
    const holders = (this.#holders[slot] ?? 0) - 1;
    this.#holders[slot] = holders;
    if (holders > 0) return;
    this.#byContent.remove(slot);
    this.#blocks.delete(slot);
  }

  /** What a run lies in, from {@link start} to {@link end}. */
  buffer(slot: Slot): Buffer {
    return this.#blocks.buffer(slot);
  }

  start(slot: Slot): number {
    return this.#blocks.start(slot);
  }

  end(slot: Slot): number {
    return this.#blocks.start(slot) + this.#blocks.length(slot);
  }
}
