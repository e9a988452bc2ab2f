/**
 * Chooses the entries to evict. A hand goes round the memory, as in the page replacement of operating systems
 * ("clock"): an entry that was used since the hand last passed is skipped once. So a flood of names that are never
 * queried again evicts only itself, and a hit costs one look at a byte.
 */
import { type BlockMemory, REGION_UNITS } from "../../lib/collections/slab/block-memory.ts";
import { SlabFault } from "../../lib/collections/slab/slab-fault.ts";
import type { EntryMarks } from "./entry-marks.ts";

/** How many entries are skipped for one that is evicted. */
const MOST_PASSED = 32;
/** How many areas of memory are compared when a large answer needs one. */
const AREAS = 8;
/**
 * Larger areas hardly ever are without used entries: the area with the fewest is taken, and the search clears no
 * marks.
 */
const SMALL_UNITS = 16;

export interface Area {
  start: number;
  end: number;
}

export class Evictor {
  readonly #blocks: BlockMemory;
  readonly #marks: EntryMarks;
  readonly #area: Area = { start: 0, end: 0 };
  readonly #best: Area = { start: 0, end: 0 };

  constructor(blocks: BlockMemory, marks: EntryMarks) {
    this.#blocks = blocks;
    this.#marks = marks;
  }

  /** Returns the entry to evict. The slab must not be empty. */
  victim(): number {
    let unit = this.#blocks.nextBlock();
    for (let passed = 0; passed < MOST_PASSED && this.#marks.wasUsed(unit); passed++) {
      this.#marks.forgetUse(unit);
      unit = this.#blocks.nextBlock();
    }
    if (unit < 0) throw new SlabFault("the slab counts entries but contains no entry");
    return unit;
  }

  /** Finds an area that has room for a block of `units` units once all entries that begin in it are evicted. */
  area(units: number): Readonly<Area> {
    const best = this.#best;
    const area = this.#area;
    let fewest = Number.POSITIVE_INFINITY;
    const isSmall = units <= SMALL_UNITS;
    const tries = isSmall ? MOST_PASSED : AREAS;
    for (let count = 0; count < tries && fewest > 0; count++) {
      const used = this.#measure(this.#blocks.nextBlock(), units, isSmall);
      this.#blocks.moveHand(area.end);
      if (used >= fewest) continue;
      fewest = used;
      best.start = area.start;
      best.end = area.end;
    }
    return best;
  }

  /**
   * Measures the area that begins with a block and the free space before it. @returns how many of its entries were
   * used
   */
  #measure(unit: number, units: number, clears: boolean): number {
    const blocks = this.#blocks;
    const regionEnd = unit - (unit % REGION_UNITS) + REGION_UNITS;
    const first = blocks.runStart(unit);
    // A block that does not fit before the end of the region goes to the beginning of the next one.
    const start = first + units <= regionEnd ? first : regionEnd % blocks.unitsTouched;
    let used = 0;
    let end = start;
    for (let length = 0; end - start < units; end += length) {
      length = blocks.lengthOf(end);
      if (length === 0) throw new SlabFault("a block has no length");
      if (!blocks.isBlock(end) || !this.#marks.wasUsed(end)) continue;
      used++;
      if (clears) this.#marks.forgetUse(end);
    }
    this.#area.start = start;
    this.#area.end = end;
    return used;
  }
}
