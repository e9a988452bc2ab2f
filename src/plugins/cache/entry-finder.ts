/** Finds the entry that answers a question. */
import { type BlockMemory, REGION_UNITS } from "../../lib/collections/slab/block-memory.ts";
import type { HashIndex } from "../../lib/collections/slab/hash-index.ts";
import type { ReadGuard } from "../../lib/collections/slab/read-guard.ts";
import { SlabFault } from "../../lib/collections/slab/slab-fault.ts";
import type { Asked } from "../../plugin/message/asked.ts";
import { isAbout } from "./kept-entries.ts";

export const REGION_SHIFT: number = Math.log2(REGION_UNITS);
const NONE = -1;
/** Another thread wrote during the search: search again. */
export const DISTURBED = -2;
/** The index has no end: its memory is damaged. */
export const DAMAGED = -3;

export class EntryFinder {
  readonly #index: HashIndex;
  readonly #blocks: BlockMemory;
  readonly #guard: ReadGuard;

  constructor(index: HashIndex, blocks: BlockMemory, guard: ReadGuard) {
    this.#index = index;
    this.#blocks = blocks;
    this.#guard = guard;
  }

  /** Lookup without locking, or under the lock. */
  find(hash: number, traits: number, query: Asked): number {
    const index = this.#index;
    const { pairs } = index;
    const first = index.first(hash);
    let at = first;
    while (pairs[at + 1] !== 0) {
      if (pairs[at] === hash) {
        const unit = (pairs[at + 1] as number) - 1;
        if (isAbout(this.#blocks, unit, traits, query)) return unit;
      }
      at = index.next(at);
      if (at === first) return DAMAGED;
    }
    return NONE;
  }

  /** Lookup as a part of a change. */
  inside(hash: number, traits: number, query: Asked): number {
    const unit = this.find(hash, traits, query);
    if (unit === DAMAGED) throw new SlabFault("the index has no empty place");
    return unit;
  }

  /** The result must be read by `EntrySlab.read`, which checks that the entry was whole. */
  whileOthersWrite(hash: number, traits: number, query: Asked): number {
    const index = this.#index;
    const { pairs } = index;
    const first = index.first(hash);
    let at = first;
    for (;;) {
      const value = pairs[at + 1] as number;
      if (value === 0) return NONE;
      if (pairs[at] === hash) {
        const unit = value - 1;
        const region = unit >>> REGION_SHIFT;
        if (region >= this.#blocks.regions) return DAMAGED;
        // An entry still in the index after reading has begun was not freed before.
        if (!this.#guard.begin(region) || pairs[at + 1] !== value) return DISTURBED;
        if (isAbout(this.#blocks, unit, traits, query)) return unit;
      }
      at = index.next(at);
      if (at === first) return DAMAGED;
    }
  }
}
