/**
 * Nodes of a zone that a pending change alters, each with the head of its list of RRsets before and after. The table is separate
 * from the tree of names: a pending node has its index in this table in place of its head, so that look-ups of other nodes are
 * unaffected.
 */
import { discard, grown, grownLength, moved } from "./octet-heap.ts";

/** Selects one of the two states. The numbers are the fields of an entry. */
export const Side = { BEFORE: 1, AFTER: 2 } as const;
export type SideNumber = (typeof Side)[keyof typeof Side];

/** An empty list: the node exists for the nodes below it, or does not exist. */
export const EMPTY = -1;
export const ABSENT = -2;

const NODE = 0;
const FIELDS = 3;
const int32 = (length: number): Int32Array => new Int32Array(length);

export class PendingNodes {
  /** The state that look-ups see. */
  side: SideNumber = Side.BEFORE;
  #entries = int32(64 * FIELDS);
  count = 0;

  /** @returns the index */
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

  /** The head in the current state. */
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

  /** Bytes of memory. */
  get size(): number {
    return this.#entries.length * 4;
  }

  /** Frees the memory of an unused table. */
  discard(): void {
    this.count = 0;
    discard(this.#entries);
  }

  /** In portions. Nothing may be added until the promise resolves. */
  async makeRoom(nodes: number, pause: () => Promise<void>): Promise<void> {
    const used = this.count * FIELDS;
    const needed = used + nodes * FIELDS;
    if (needed <= this.#entries.length) return;
    this.#entries = await moved(this.#entries, used, int32, pause, grownLength(this.#entries, needed));
  }
}
