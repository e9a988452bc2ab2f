/**
 * Chooses what makes room. A hand goes round the memory, as in the page replacement of operating systems ("clock"): what was asked for since the
 * hand came by last time is passed over once. So a flood of names that nobody asks for again pushes out itself, and a hit costs a look at an
 * octet.
 */
import type { BlockMemory } from "../../lib/slab/block-memory.ts";

/** The bit of an entry that was asked for. */
const USED = 1;

/** How many entries are passed over for one that goes. */
const MOST_PASSED = 32;
/** How many parts of memory are compared when a large answer needs one. */
const AREAS = 8;
/** Parts of more entries than this hardly ever have none that is used: the one with the fewest is taken, and no mark is lost for it. */
const SMALL_ORDER = 3;

export interface Area {
  start: number;
  end: number;
}

export class Evictor {
  readonly #blocks: BlockMemory;
  readonly #marks: Uint8Array;
  readonly #area: Area = { start: 0, end: 0 };

  constructor(blocks: BlockMemory, marks: Uint8Array) {
    this.#blocks = blocks;
    this.#marks = marks;
  }

  /** Notes that an entry was asked for. */
  use(unit: number): void {
    const mark = this.#marks[unit] as number;
    if ((mark & USED) === 0) this.#marks[unit] = mark | USED;
  }

  /** The entry that goes. There must be one. */
  victim(): number {
    let unit = this.#blocks.nextBlock();
    for (let passed = 0; passed < MOST_PASSED && this.#wasUsed(unit); passed++) {
      this.#marks[unit] = (this.#marks[unit] as number) & ~USED;
      unit = this.#blocks.nextBlock();
    }
    return unit;
  }

  /** A part of memory that is large enough for a block of that order once all that begins in it is gone. */
  area(order: number): Readonly<Area> {
    const best = this.#area;
    let fewest = Number.POSITIVE_INFINITY;
    const tries = order <= SMALL_ORDER ? MOST_PASSED : AREAS;
    for (let count = 0; count < tries && fewest > 0; count++) {
      const unit = this.#blocks.nextBlock();
      const size = 1 << Math.max(order, this.#blocks.orderOf(unit));
      const start = unit & ~(size - 1);
      const used = this.#usedIn(start, start + size, order <= SMALL_ORDER);
      this.#blocks.moveHand(start + size);
      if (used >= fewest) continue;
      fewest = used;
      best.start = start;
      best.end = start + size;
    }
    return best;
  }

  #usedIn(start: number, end: number, clears: boolean): number {
    let used = 0;
    for (
      let unit = this.#blocks.firstBlock(start, end);
      unit >= 0;
      unit = this.#blocks.firstBlock(unit + (1 << this.#blocks.orderOf(unit)), end)
    ) {
      if (!this.#wasUsed(unit)) continue;
      used++;
      if (clears) this.#marks[unit] = (this.#marks[unit] as number) & ~USED;
    }
    return used;
  }

  #wasUsed(unit: number): boolean {
    return ((this.#marks[unit] as number) & USED) !== 0;
  }
}
