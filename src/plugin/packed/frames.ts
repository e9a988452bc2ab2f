/** Buffers that cached answers are copied to on their way out: lent to a reply, and returned when it is sent. */
import { RUN_NUMBERS } from "../../dns/address-runs.ts";
import { EncodedSections, type SectionsLender } from "../../dns/encoded-sections.ts";

/** Room for one answer at a time. */
export class Frame implements SectionsLender {
  readonly sections: EncodedSections;
  /** The octets of the sections, as words. */
  readonly words: Int32Array;
  /** The runs of addresses, as `EncodedSections.runTable`. */
  readonly runs: Uint16Array;
  readonly #pool: FramePool;

  constructor(pool: FramePool, octets: number, records: number) {
    this.#pool = pool;
    this.sections = EncodedSections.forLending(octets, records);
    this.words = new Int32Array(this.sections.bytes.buffer);
    this.runs = new Uint16Array((records >> 1) * RUN_NUMBERS);
  }

  takeBack(): void {
    this.#pool.add(this);
  }
}

export class FramePool {
  readonly #free: Frame[] = [];

  /**
   * A frame for a message of that size. A caller that keeps its sections keeps the frame, too: the pool then has one
   * less.
   */
  take(octets: number, records: number): Frame {
    const known = this.#free.pop();
    const frame =
      known !== undefined &&
      known.sections.bytes.length >= octets &&
      known.sections.typeOffsets.length >= records
        ? known
        : new Frame(this, roomFor(octets, USUAL_OCTETS), roomFor(records, USUAL_RECORDS));
    frame.sections.lender = frame;
    return frame;
  }

  add(frame: Frame): void {
    if (this.#free.length < MAX_FREE) this.#free.push(frame);
  }
}

/** One reply is in progress at a time, and some more while a plugin looks up names for it. */
const MAX_FREE = 8;
const USUAL_OCTETS = 512;
const USUAL_RECORDS = 16;

/** The next power of two. */
function roomFor(wanted: number, least: number): number {
  let room = least;
  while (room < wanted) room *= 2;
  return room;
}
