/**
 * Chooses what makes room. A hand goes round the memory, as in the page replacement of operating systems ("clock"): what was asked for since the
 * hand came by last time is skipped once. So a flood of names that nobody asks for again pushes out itself, and a hit costs a look at an
 * octet.
 */
import { type BlockMemory, REGION_UNITS } from "../../lib/collections/slab/block-memory.ts";
import { SlabFault } from "../../lib/collections/slab/slab-fault.ts";
import type { EntryMarks } from "./entry-marks.ts";

/** How many entries are passed over for one that goes. */
const MOST_PASSED = 32;
/** How many parts of memory are compared when a large answer needs one. */
const AREAS = 8;
/** Parts of more units than this hardly ever have none that is used: the one with the fewest is taken, and no mark is lost for it. */
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

  /** The entry that goes. There must be one. */
  victim(): number {
    let unit = this.#blocks.nextBlock();
    for (let passed = 0; passed < MOST_PASSED && this.#marks.wasUsed(unit); passed++) {
      this.#marks.forgetUse(unit);
      unit = this.#blocks.nextBlock();
    }
    if (unit < 0) throw new SlabFault("entries are counted, and there are none");
    return unit;
  }

  /** A part of memory that has room for a block of so many units once all that begins in it is gone. */
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

  /** Looks at the part of memory that begins with a block, and with what is free before it. @returns how many in it were used */
  #measure(unit: number, units: number, clears: boolean): number {
    const blocks = this.#blocks;
    const regionEnd = unit - (unit % REGION_UNITS) + REGION_UNITS;
    const first = blocks.runStart(unit);
    // What does not fit before the end of the region goes to the beginning of the next.
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
