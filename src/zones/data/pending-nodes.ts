/**
 * Nodes of a zone that a change is about to alter, each with the head of its list of RRsets before and after. The table stands beside the tree
 * of names: a node of it has the number of its place here where its head stood, so that a look-up which comes to other nodes does not notice.
 */
import { discard, grown, grownLength, moved } from "./octet-heap.ts";

/** Which of the two states is looked at. The numbers are the fields of an entry. */
export const Side = { BEFORE: 1, AFTER: 2 } as const;
export type SideNumber = (typeof Side)[keyof typeof Side];

/** Heads of lists that are none: the node is there for the sake of those below it, or it is not there. */
export const EMPTY = -1;
export const ABSENT = -2;

const NODE = 0;
const FIELDS = 3;
const int32 = (length: number): Int32Array => new Int32Array(length);

export class PendingNodes {
  /** What whoever asks gets to see. */
  side: SideNumber = Side.BEFORE;
  #entries = int32(64 * FIELDS);
  count = 0;

  /** @returns the place */
  add(node: number, before: number, after: number): number {
    if ((this.count + 1) * FIELDS > this.#entries.length) this.#entries = grown(this.#entries, int32);
    const at = this.count * FIELDS;
    this.#entries[at + NODE] = node;
    this.#entries[at + Side.BEFORE] = before;
    this.#entries[at + Side.AFTER] = after;
    return this.count++;
  }

  node(place: number): number {
    return this.#entries[place * FIELDS + NODE] as number;
  }

  /** The head that counts now. */
  head(place: number): number {
    return this.#entries[place * FIELDS + this.side] as number;
  }

  before(place: number): number {
    return this.#entries[place * FIELDS + Side.BEFORE] as number;
  }

  after(place: number): number {
    return this.#entries[place * FIELDS + Side.AFTER] as number;
  }

  setAfter(place: number, head: number): void {
    this.#entries[place * FIELDS + Side.AFTER] = head;
  }

  /** Octets of memory. */
  get size(): number {
    return this.#entries.length * 4;
  }

  /** Frees the memory of a table that nobody needs any more. */
  discard(): void {
    this.count = 0;
    discard(this.#entries);
  }

  /** In portions. Nobody may add to it meanwhile. */
  async makeRoom(nodes: number, pause: () => Promise<void>): Promise<void> {
    const used = this.count * FIELDS;
    const needed = used + nodes * FIELDS;
    if (needed <= this.#entries.length) return;
    this.#entries = await moved(this.#entries, used, int32, pause, grownLength(this.#entries, needed));
  }
}
