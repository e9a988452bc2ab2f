/**
 * Nodes with an RRset of a type, or with any RRset, in canonical order (RFC 4034 section 6.1), to find the predecessor of a name.
 */
import { APEX, NO_NODE } from "./name-tree.ts";
import { EMPTY } from "./pending-nodes.ts";
import { sortInPortions } from "./portioned-sort.ts";
import { NO_RRSET } from "./rrset-table.ts";
import type { ZoneRecords } from "./zone-records.ts";

export const ANY_TYPE = 255;

/** Nodes between two pauses. */
const PORTION = 2_000;

export class NodeOrder {
  readonly #records: ZoneRecords;
  readonly #type: number;
  #nodes: Int32Array = new Int32Array(0);

  /** @param type ANY_TYPE for all nodes with records */
  constructor(records: ZoneRecords, type: number) {
    this.#records = records;
    this.#type = type;
  }

  get count(): number {
    return this.#nodes.length;
  }

  get size(): number {
    return this.#nodes.length * 4;
  }

  /** The node at an index of the order. */
  at(index: number): number {
    return this.#nodes[index] as number;
  }

  /**
   * The node of the name, or its predecessor; the last node precedes the first.
   * @param starts starts of the name's labels below the apex after `offset`, `count` of them
   */
  atOrBefore(bytes: Uint8Array, starts: Uint8Array, offset: number, count: number): number {
    const nodes = this.#nodes;
    if (nodes.length === 0) return NO_NODE;
    let low = 0;
    let high = nodes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const order = this.#records.names.compareName(nodes[middle] as number, bytes, starts, offset, count);
      if (order === 0) return nodes[middle] as number;
      if (order < 0) low = middle + 1;
      else high = middle;
    }
    return nodes[(low === 0 ? nodes.length : low) - 1] as number;
  }

  /** Reads all nodes. In a signed file they are usually sorted, which only has to be checked. */
  async build(pause?: () => Promise<void>): Promise<void> {
    const { names } = this.#records;
    let count = 0;
    let isSorted = true;
    let last = NO_NODE;
    let nodes = new Int32Array(names.limit === 1 ? 1 : 64);
    for (let node = APEX; node < names.limit; node++) {
      if (node % PORTION === PORTION - 1) await pause?.();
      if (!this.#belongs(node)) continue;
      if (isSorted && last !== NO_NODE && names.compare(last, node) > 0) isSorted = false;
      if (count === nodes.length) {
        const larger = new Int32Array(count * 2);
        larger.set(nodes);
        nodes = larger;
      }
      nodes[count++] = node;
      last = node;
    }
    const found = nodes.slice(0, count);
    this.#nodes = isSorted
      ? found
      : await sortInPortions(found, (one, other) => names.compare(one, other), pause);
  }

  /**
   * Computes the order after the pending change, while the current one stays in force: new nodes are sorted, and merged with the
   * remaining ones.
   * @returns `undefined` if no node is added or removed
   */
  async prepare(pause: () => Promise<void>): Promise<Int32Array | undefined> {
    const { names } = this.#records;
    const { pending } = names;
    const count = pending?.count ?? 0;
    let coming = new Int32Array(0);
    let [come, gone] = [0, 0];
    for (let place = 0; pending !== undefined && place < count; place++) {
      if (place % PORTION === PORTION - 1) await pause();
      const wasHere = this.#isIn(pending.before(place));
      if (wasHere === this.#isIn(pending.after(place))) continue;
      if (wasHere) gone++;
      else {
        if (come === coming.length) {
          const larger = new Int32Array(2 * come + 64);
          larger.set(coming);
          coming = larger;
        }
        coming[come++] = pending.node(place);
      }
    }
    if (come + gone === 0) return undefined;
    const sorted = await sortInPortions(
      coming.slice(0, come),
      (one, other) => names.compare(one, other),
      pause,
    );
    const former = this.#nodes;
    const order = new Int32Array(former.length - gone + come);
    let [next, at] = [0, 0];
    for (const [index, node] of former.entries()) {
      if (index % PORTION === PORTION - 1) await pause();
      if (names.isPending(node) && !this.#isIn(pending?.after(names.place(node)) ?? EMPTY)) continue;
      while (next < come && names.compare(sorted[next] as number, node) < 0) {
        if (at % PORTION === PORTION - 1) await pause();
        order[at++] = sorted[next++] as number;
      }
      order[at++] = node;
    }
    order.set(sorted.subarray(next), at);
    return order;
  }

  /** Puts the result of {@link prepare} into force. */
  replace(nodes: Int32Array | undefined): void {
    this.#nodes = nodes ?? this.#nodes;
  }

  #isIn(list: number): boolean {
    for (let rrset = list; rrset >= 0; rrset = this.#records.next(rrset))
      if (this.#records.type(rrset) === this.#type) return true;
    return false;
  }

  #belongs(node: number): boolean {
    if (this.#type === ANY_TYPE) return this.#records.first(node) >= 0;
    return this.#records.names.exists(node) && this.#records.rrset(node, this.#type) !== NO_RRSET;
  }
}
