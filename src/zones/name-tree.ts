/**
 * The names of a zone as a tree in typed arrays: a node is a number, its label stands in a buffer of octets, and a hash table leads from
 * a parent and a label to the child. Names are in lower case. The apex is node 0.
 */
import { FOLD, octetAt } from "../dns/octets.ts";
import { grown, type OctetHeap, trimmed } from "./octet-heap.ts";

export const APEX = 0;
export const NO_NODE = -1;

const int32 = (length: number): Int32Array => new Int32Array(length);
const uint32 = (length: number): Uint32Array => new Uint32Array(length);
const HASH_PRIME = 0x01000193;
const HASH_BASIS = 0x811c9dc5 | 0;
/** Label lists of a name: at most 127 labels. */
const path = new Int32Array(128);

export class NameTree {
  readonly #heap: OctetHeap;
  #hashes = int32(8);
  #parents = int32(8);
  #labels = uint32(8);
  /** First RRset of each node, -1 for none: what the tree keeps for its owner. */
  #rrsets = int32(8);
  #children = int32(8);
  #slots = int32(16);
  #used = 1;
  #count = 1;
  #free = NO_NODE;

  constructor(heap: OctetHeap) {
    this.#heap = heap;
    this.#hashes[APEX] = HASH_BASIS;
    this.#parents[APEX] = NO_NODE;
    this.#rrsets[APEX] = -1;
  }

  /** Nodes, the apex included. */
  get count(): number {
    return this.#count;
  }

  /** All nodes have numbers below it. */
  get limit(): number {
    return this.#used;
  }

  /** Octets of memory, the heap not counted. */
  get size(): number {
    return this.#hashes.length * 20 + this.#slots.length * 4;
  }

  parent(node: number): number {
    return this.#parents[node] as number;
  }

  /** Whether the number stands for a node. */
  exists(node: number): boolean {
    return (this.#rrsets[node] as number) !== FREED;
  }

  firstRrset(node: number): number {
    return this.#rrsets[node] as number;
  }

  setFirstRrset(node: number, rrset: number): void {
    this.#rrsets[node] = rrset;
  }

  hasChildren(node: number): boolean {
    return (this.#children[node] as number) > 0;
  }

  /** Where the length octet of the node's label stands in the heap. */
  label(node: number): number {
    return this.#labels[node] as number;
  }

  /** The child of `parent` whose label begins with the length octet at `bytes[at]`, in any case. */
  child(parent: number, bytes: Uint8Array, at: number): number {
    const hash = this.#hashLabel(parent, bytes, at);
    const mask = this.#slots.length - 1;
    for (let slot = spread(hash) & mask; ; slot = (slot + 1) & mask) {
      const entry = this.#slots[slot] as number;
      if (entry === 0) return NO_NODE;
      const node = entry - 1;
      if (this.#hashes[node] === hash && this.#parents[node] === parent && this.#sameLabel(node, bytes, at))
        return node;
    }
  }

  /** As {@link child}, and makes it where there is none. */
  childOrNew(parent: number, bytes: Uint8Array, at: number): number {
    const known = this.child(parent, bytes, at);
    if (known !== NO_NODE) return known;
    const node = this.#newNode();
    const length = octetAt(bytes, at) + 1;
    const label = this.#heap.allocate(length);
    for (let index = 0; index < length; index++) {
      this.#heap.bytes[label + index] = octetAt(FOLD, octetAt(bytes, at + index));
    }
    this.#hashes[node] = this.#hashLabel(parent, bytes, at);
    this.#parents[node] = parent;
    this.#labels[node] = label;
    this.#rrsets[node] = -1;
    this.#children[node] = 0;
    this.#children[parent] = (this.#children[parent] as number) + 1;
    this.#count++;
    // Three quarters full at the most: probes stay short.
    if (this.#count * 4 > this.#slots.length * 3) this.#rehash(this.#slots.length * 2);
    else this.#enter(node);
    return node;
  }

  /** Takes away a node without records or children, and the parents that existed for its sake. */
  prune(node: number): void {
    let at = node;
    while (at !== APEX && this.#rrsets[at] === -1 && this.#children[at] === 0) {
      const parent = this.#parents[at] as number;
      this.#leave(at);
      this.#heap.garbage += octetAt(this.#heap.bytes, this.#labels[at] as number) + 1;
      this.#rrsets[at] = FREED;
      this.#parents[at] = this.#free;
      this.#free = at;
      this.#count--;
      this.#children[parent] = (this.#children[parent] as number) - 1;
      at = parent;
    }
  }

  /** The number of labels between the apex and the node. */
  depth(node: number): number {
    let depth = 0;
    for (let at = node; at !== APEX; at = this.#parents[at] as number) depth++;
    return depth;
  }

  /** Writes the labels of a node down to the apex, without those of the apex; returns where they end. */
  writeLabels(node: number, target: Uint8Array, to: number): number {
    const { bytes } = this.#heap;
    let end = to;
    for (let at = node; at !== APEX; at = this.#parents[at] as number) {
      const label = this.#labels[at] as number;
      const length = octetAt(bytes, label) + 1;
      for (let index = 0; index < length; index++) target[end + index] = octetAt(bytes, label + index);
      end += length;
    }
    return end;
  }

  /** Canonical order of two nodes (RFC 4034 section 6.1): negative, zero or positive. */
  compare(left: number, right: number): number {
    let [leftDepth, rightDepth] = [this.depth(left), this.depth(right)];
    const depths = leftDepth - rightDepth;
    let [one, other] = [left, right];
    for (; leftDepth > rightDepth; leftDepth--) one = this.#parents[one] as number;
    for (; rightDepth > leftDepth; rightDepth--) other = this.#parents[other] as number;
    if (one === other) return depths;
    while (this.#parents[one] !== this.#parents[other]) {
      one = this.#parents[one] as number;
      other = this.#parents[other] as number;
    }
    const { bytes } = this.#heap;
    return compareLabels(bytes, this.#labels[one] as number, bytes, this.#labels[other] as number);
  }

  /**
   * Canonical order of a node and a name in the zone.
   * @param starts where the labels of the name below the apex begin, leftmost first, `count` of them
   */
  compareName(node: number, bytes: Uint8Array, starts: Uint8Array, offset: number, count: number): number {
    let depth = 0;
    for (let at = node; at !== APEX; at = this.#parents[at] as number) path[depth++] = at;
    const shared = Math.min(depth, count);
    for (let index = 1; index <= shared; index++) {
      const label = this.#labels[path[depth - index] as number] as number;
      const order = compareLabels(this.#heap.bytes, label, bytes, offset + octetAt(starts, count - index));
      if (order !== 0) return order;
    }
    return depth - count;
  }

  /** Gives back what is not in use, where that is much. */
  trim(): void {
    this.#hashes = trimmed(this.#hashes, this.#used, int32);
    this.#parents = trimmed(this.#parents, this.#used, int32);
    this.#labels = trimmed(this.#labels, this.#used, uint32);
    this.#rrsets = trimmed(this.#rrsets, this.#used, int32);
    this.#children = trimmed(this.#children, this.#used, int32);
  }

  /** The same nodes under the same numbers. */
  clone(heap: OctetHeap): NameTree {
    const copy = new NameTree(heap);
    copy.#hashes = this.#hashes.slice();
    copy.#parents = this.#parents.slice();
    copy.#labels = this.#labels.slice();
    copy.#rrsets = this.#rrsets.slice();
    copy.#children = this.#children.slice();
    copy.#slots = this.#slots.slice();
    copy.#used = this.#used;
    copy.#count = this.#count;
    copy.#free = this.#free;
    return copy;
  }

  #newNode(): number {
    const node = this.#free;
    if (node !== NO_NODE) {
      this.#free = this.#parents[node] as number;
      return node;
    }
    if (this.#used === this.#hashes.length) {
      this.#hashes = grown(this.#hashes, int32);
      this.#parents = grown(this.#parents, int32);
      this.#labels = grown(this.#labels, uint32);
      this.#rrsets = grown(this.#rrsets, int32);
      this.#children = grown(this.#children, int32);
    }
    return this.#used++;
  }

  #hashLabel(parent: number, bytes: Uint8Array, at: number): number {
    let hash = this.#hashes[parent] as number;
    for (let index = at + octetAt(bytes, at); index >= at; index--) {
      hash = Math.imul(hash ^ octetAt(FOLD, octetAt(bytes, index)), HASH_PRIME);
    }
    return hash;
  }

  #sameLabel(node: number, bytes: Uint8Array, at: number): boolean {
    const mine = this.#heap.bytes;
    const label = this.#labels[node] as number;
    const length = octetAt(bytes, at);
    if (octetAt(mine, label) !== length) return false;
    for (let index = 1; index <= length; index++) {
      if (octetAt(mine, label + index) !== octetAt(FOLD, octetAt(bytes, at + index))) return false;
    }
    return true;
  }

  #enter(node: number): void {
    const mask = this.#slots.length - 1;
    let slot = spread(this.#hashes[node] as number) & mask;
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
    this.#slots[slot] = node + 1;
  }

  /** Closes the gap, so that probes need no marks of what was there. */
  #leave(node: number): void {
    const mask = this.#slots.length - 1;
    let gap = spread(this.#hashes[node] as number) & mask;
    while (this.#slots[gap] !== node + 1) gap = (gap + 1) & mask;
    for (let slot = (gap + 1) & mask; this.#slots[slot] !== 0; slot = (slot + 1) & mask) {
      const entry = this.#slots[slot] as number;
      const home = spread(this.#hashes[entry - 1] as number) & mask;
      if (((slot - home) & mask) < ((slot - gap) & mask)) continue;
      this.#slots[gap] = entry;
      gap = slot;
    }
    this.#slots[gap] = 0;
  }

  #rehash(length: number): void {
    this.#slots = int32(length);
    for (let node = APEX + 1; node < this.#used; node++) if (this.exists(node)) this.#enter(node);
  }
}

const FREED = -2;

/** The low bits vary least in the last step of the hash: fold the high ones in. */
function spread(hash: number): number {
  return hash ^ (hash >>> 15);
}

export function compareLabels(left: Uint8Array, leftAt: number, right: Uint8Array, rightAt: number): number {
  const leftLength = octetAt(left, leftAt);
  const rightLength = octetAt(right, rightAt);
  const shared = Math.min(leftLength, rightLength);
  for (let at = 1; at <= shared; at++) {
    const order = octetAt(FOLD, octetAt(left, leftAt + at)) - octetAt(FOLD, octetAt(right, rightAt + at));
    if (order !== 0) return order;
  }
  return leftLength - rightLength;
}
