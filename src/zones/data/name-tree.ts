/**
 * The names of a zone as a tree in typed arrays: a node is a number, its label is in a byte buffer, and a hash table maps a parent
 * and a label to the child. Names are in lower case. The apex is node 0.
 * The fields of a node are adjacent, because in a large zone each separate place costs a cache miss.
 */
import { FOLD, octetAt } from "../../dns/octets.ts";
import {
  copied,
  discard,
  grown,
  grownLength,
  moved,
  type OctetHeap,
  reserved,
  trimmed,
} from "./octet-heap.ts";
import { ABSENT, EMPTY, PendingNodes, Side, type SideNumber } from "./pending-nodes.ts";

export const APEX = 0;
export const NO_NODE = -1;

const int32 = (length: number): Int32Array => new Int32Array(length);
/** Fields of a node. */
const HASH = 0;
const PARENT = 1;
/** Offset of the label in the heap. */
const LABEL = 2;
/** First RRset, -1 for none; the tree stores it for its owner. Below -1: not a node, or an index of the pending nodes. */
const RRSET = 3;
const CHILDREN = 4;
const FIELDS = 5;
const HASH_PRIME = 0x01000193;
const HASH_BASIS = 0x811c9dc5 | 0;
/** Nodes between two pauses. Each may touch a page of its own. */
const PORTION = 500;
/** Labels of a name: at most 127. */
const path = new Int32Array(128);

export class ZoneTree {
  readonly #heap: OctetHeap;
  #nodes = int32(8 * FIELDS);
  #slots = int32(16);
  #used = 1;
  #count = 1;
  #free = NO_NODE;
  /** The nodes that a pending change alters; see {@link begin}. */
  #pending: PendingNodes | undefined;

  constructor(heap: OctetHeap) {
    this.#heap = heap;
    this.#makeApex();
  }

  /** Removes all nodes but the apex. @returns the arrays to discard */
  clear(): readonly Int32Array[] {
    const former = [this.#nodes, this.#slots];
    this.#nodes = int32(8 * FIELDS);
    this.#slots = int32(16);
    this.#used = 1;
    this.#count = 1;
    this.#free = NO_NODE;
    this.#makeApex();
    return former;
  }

  #makeApex(): void {
    this.#nodes[HASH] = HASH_BASIS;
    this.#nodes[PARENT] = NO_NODE;
    this.#nodes[RRSET] = -1;
  }

  /** Nodes, the apex included. */
  get count(): number {
    return this.#count;
  }

  /** All nodes have numbers below it. */
  get limit(): number {
    return this.#used;
  }

  /** Bytes of memory, without the heap. */
  get size(): number {
    return this.#nodes.length * 4 + this.#slots.length * 4;
  }

  /** Like {@link size}, only the used part. */
  get used(): number {
    return this.#used * FIELDS * 4 + this.#slots.length * 4;
  }

  parent(node: number): number {
    return this.#nodes[node * FIELDS + PARENT] as number;
  }

  /** Whether the number is a node. */
  exists(node: number): boolean {
    const first = this.#nodes[node * FIELDS + RRSET] as number;
    return first >= EMPTY || this.#pendingHead(first) >= EMPTY;
  }

  firstRrset(node: number): number {
    const first = this.#nodes[node * FIELDS + RRSET] as number;
    return first >= EMPTY ? first : this.#pendingHead(first);
  }

  setFirstRrset(node: number, rrset: number): void {
    const first = this.#nodes[node * FIELDS + RRSET] as number;
    if (this.#pending !== undefined && first <= PENDING) this.#pending.setAfter(PENDING - first, rrset);
    else this.#nodes[node * FIELDS + RRSET] = rrset;
  }

  #pendingHead(first: number): number {
    return first <= PENDING && this.#pending !== undefined ? this.#pending.head(PENDING - first) : ABSENT;
  }

  /** Offset of the label's length octet in the heap. */
  label(node: number): number {
    return (this.#nodes[node * FIELDS + LABEL] as number) >>> 0;
  }

  /** The child of `parent` whose label begins with the length octet at `bytes[at]`, in any case. */
  child(parent: number, bytes: Uint8Array, at: number): number {
    const node = this.#seek(parent, bytes, at);
    return node === NO_NODE || this.exists(node) ? node : NO_NODE;
  }

  /** Also finds a child that exists only before or after a change. */
  #seek(parent: number, bytes: Uint8Array, at: number): number {
    const hash = this.#hashLabel(parent, bytes, at);
    const mask = this.#slots.length - 1;
    for (let slot = spread(hash) & mask; ; slot = (slot + 1) & mask) {
      const entry = this.#slots[slot] as number;
      if (entry === 0) return NO_NODE;
      const node = entry - 1;
      if (
        this.#nodes[node * FIELDS + HASH] === hash &&
        this.#nodes[node * FIELDS + PARENT] === parent &&
        this.#sameLabel(node, bytes, at)
      )
        return node;
    }
  }

  /** Like {@link child}, but creates a missing child. */
  childOrNew(parent: number, bytes: Uint8Array, at: number): number {
    const known = this.#seek(parent, bytes, at);
    if (known !== NO_NODE) {
      if (!this.exists(known)) {
        this.setFirstRrset(known, EMPTY);
        this.#countChild(parent, 1);
      }
      return known;
    }
    const node = this.#newNode();
    const length = octetAt(bytes, at) + 1;
    const label = this.#heap.allocate(length);
    for (let index = 0; index < length; index++) {
      this.#heap.bytes[label + index] = octetAt(FOLD, octetAt(bytes, at + index));
    }
    this.#nodes[node * FIELDS + HASH] = this.#hashLabel(parent, bytes, at);
    this.#nodes[node * FIELDS + PARENT] = parent;
    this.#nodes[node * FIELDS + LABEL] = label;
    this.#nodes[node * FIELDS + CHILDREN] = 0;
    this.#nodes[node * FIELDS + RRSET] = EMPTY;
    if (this.#pending !== undefined)
      this.#nodes[node * FIELDS + RRSET] = PENDING - this.#pending.add(node, ABSENT, EMPTY);
    this.#countChild(parent, 1);
    this.#count++;
    // At most three quarters full, so that probes stay short.
    if (this.#count * 4 > this.#slots.length * 3) this.#rehash(this.#slots.length * 2);
    else this.#enter(node);
    return node;
  }

  /** Removes a node without records or children, and parents that existed only for it. */
  prune(node: number): void {
    let at = node;
    while (at !== APEX && this.firstRrset(at) === EMPTY && this.#nodes[at * FIELDS + CHILDREN] === 0) {
      const parent = this.#nodes[at * FIELDS + PARENT] as number;
      if (this.#pending === undefined) this.#remove(at);
      else {
        this.pend(at, EMPTY);
        this.setFirstRrset(at, ABSENT);
      }
      this.#countChild(parent, -1);
      at = parent;
    }
  }

  #remove(node: number): void {
    this.#leave(node);
    const label = this.label(node);
    this.#heap.free(label, octetAt(this.#heap.bytes, label) + 1);
    this.#nodes[node * FIELDS + RRSET] = FREED;
    this.#nodes[node * FIELDS + PARENT] = this.#free;
    this.#free = node;
    this.#count--;
  }

  #countChild(parent: number, more: number): void {
    this.#nodes[parent * FIELDS + CHILDREN] = (this.#nodes[parent * FIELDS + CHILDREN] as number) + more;
  }

  /** From now on, changes are visible only with Side.AFTER, until {@link settle} has been called for all places. */
  begin(): void {
    this.#pending = new PendingNodes();
  }

  get pending(): PendingNodes | undefined {
    return this.#pending;
  }

  /** Nothing is pending any more. */
  end(): void {
    this.#pending?.discard();
    this.#pending = undefined;
  }

  /** Makes a node pending, unless it is. @param after start of its list after the change */
  pend(node: number, after: number): void {
    const first = this.#nodes[node * FIELDS + RRSET] as number;
    if (this.#pending !== undefined && first > PENDING)
      this.#nodes[node * FIELDS + RRSET] = PENDING - this.#pending.add(node, first, after);
  }

  isPending(node: number): boolean {
    return (this.#nodes[node * FIELDS + RRSET] as number) <= PENDING;
  }

  /** Index of a pending node. */
  place(node: number): number {
    return PENDING - (this.#nodes[node * FIELDS + RRSET] as number);
  }

  /** Fixes the node at an index to one of the sides. Look-ups on the other side must have ended. */
  settle(place: number, side: SideNumber): void {
    const pending = this.#pending;
    if (pending === undefined) return;
    const node = pending.node(place);
    const [before, after] = [pending.before(place), pending.after(place)];
    if (side === Side.BEFORE && (before === ABSENT) !== (after === ABSENT))
      this.#countChild(this.parent(node), before === ABSENT ? -1 : 1);
    const head = side === Side.BEFORE ? before : after;
    if (head === ABSENT) this.#remove(node);
    else this.#nodes[node * FIELDS + RRSET] = head;
  }

  /** The number of labels between the apex and the node. */
  depth(node: number): number {
    let depth = 0;
    for (let at = node; at !== APEX; at = this.#nodes[at * FIELDS + PARENT] as number) depth++;
    return depth;
  }

  /** Writes the labels of a node up to the apex, without those of the apex; returns their end. */
  writeLabels(node: number, target: Uint8Array, to: number): number {
    const { bytes } = this.#heap;
    let end = to;
    for (let at = node; at !== APEX; at = this.#nodes[at * FIELDS + PARENT] as number) {
      const label = (this.#nodes[at * FIELDS + LABEL] as number) >>> 0;
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
    for (; leftDepth > rightDepth; leftDepth--) one = this.#nodes[one * FIELDS + PARENT] as number;
    for (; rightDepth > leftDepth; rightDepth--) other = this.#nodes[other * FIELDS + PARENT] as number;
    if (one === other) return depths;
    while (this.#nodes[one * FIELDS + PARENT] !== this.#nodes[other * FIELDS + PARENT]) {
      one = this.#nodes[one * FIELDS + PARENT] as number;
      other = this.#nodes[other * FIELDS + PARENT] as number;
    }
    const { bytes } = this.#heap;
    return compareLabels(
      bytes,
      (this.#nodes[one * FIELDS + LABEL] as number) >>> 0,
      bytes,
      (this.#nodes[other * FIELDS + LABEL] as number) >>> 0,
    );
  }

  /**
   * Canonical order of a node and a name in the zone.
   * @param starts starts of the name's labels below the apex, leftmost first, `count` of them
   */
  compareName(node: number, bytes: Uint8Array, starts: Uint8Array, offset: number, count: number): number {
    let depth = 0;
    for (let at = node; at !== APEX; at = this.#nodes[at * FIELDS + PARENT] as number) path[depth++] = at;
    const shared = Math.min(depth, count);
    for (let index = 1; index <= shared; index++) {
      const label = (this.#nodes[(path[depth - index] as number) * FIELDS + LABEL] as number) >>> 0;
      const order = compareLabels(this.#heap.bytes, label, bytes, offset + octetAt(starts, count - index));
      if (order !== 0) return order;
    }
    return depth - count;
  }

  /** Makes room for this many nodes in total, without the heap: growing blocks a turn of the event loop. */
  reserve(nodes: number): void {
    this.#nodes = reserved(this.#nodes, nodes * FIELDS, int32);
    let slots = this.#slots.length;
    while (nodes * 4 > slots * 3) slots *= 2;
    if (slots > this.#slots.length) this.#rehash(slots);
  }

  /**
   * Ensures {@link room} in portions, so that no new node has to move everything. The tree must not change until the promise
   * resolves.
   */
  async makeRoom(nodes: number, pause: () => Promise<void>): Promise<void> {
    const needed = (this.#used + nodes) * FIELDS;
    if (needed > this.#nodes.length) {
      const length = grownLength(this.#nodes, needed);
      this.#nodes = await moved(this.#nodes, this.#used * FIELDS, int32, pause, length);
    }
    let slots = this.#slots.length;
    while ((this.#count + nodes) * 4 > slots * 3) slots *= 2;
    if (slots === this.#slots.length) return;
    const former = this.#slots;
    this.#slots = await this.#slotsOf(slots, pause);
    discard(former);
  }

  /** Frees unused memory if there is much of it. The tree must not change until the promise resolves. */
  async trim(pause: () => Promise<void>): Promise<void> {
    this.#nodes = await trimmed(this.#nodes, this.#used * FIELDS, int32, pause);
  }

  async #slotsOf(length: number, pause: () => Promise<void>): Promise<Int32Array> {
    const slots = int32(length);
    for (let node = APEX + 1; node < this.#used; node++) {
      if (node % PORTION === 0) await pause();
      if (this.#isUsed(node)) enter(slots, this.#nodes, node);
    }
    return slots;
  }

  /** Copies the nodes with the same numbers, and with room for an eighth more. In portions. */
  async copy(heap: OctetHeap, pause: () => Promise<void>): Promise<ZoneTree> {
    const copy = new ZoneTree(heap);
    copy.#nodes = await copied(this.#nodes, this.#used * FIELDS, int32, pause);
    const slots = this.#slots.length;
    if (this.#count * 4 + this.#count / 2 > slots * 3) {
      copy.#slots = await this.#slotsOf(slots * 2, pause);
    } else copy.#slots = await copied(this.#slots, slots, int32, pause, slots);
    copy.#used = this.#used;
    copy.#count = this.#count;
    copy.#free = this.#free;
    return copy;
  }

  /** Nodes that can be added before anything has to be moved. */
  get room(): number {
    const places = Math.floor(this.#nodes.length / FIELDS) - this.#used;
    return Math.min(places, Math.floor((this.#slots.length * 3) / 4) - this.#count);
  }

  #newNode(): number {
    const node = this.#free;
    if (node !== NO_NODE) {
      this.#free = this.#nodes[node * FIELDS + PARENT] as number;
      return node;
    }
    if ((this.#used + 1) * FIELDS > this.#nodes.length) this.#nodes = grown(this.#nodes, int32);
    return this.#used++;
  }

  #hashLabel(parent: number, bytes: Uint8Array, at: number): number {
    let hash = this.#nodes[parent * FIELDS + HASH] as number;
    for (let index = at + octetAt(bytes, at); index >= at; index--) {
      hash = Math.imul(hash ^ octetAt(FOLD, octetAt(bytes, index)), HASH_PRIME);
    }
    return hash;
  }

  #sameLabel(node: number, bytes: Uint8Array, at: number): boolean {
    const mine = this.#heap.bytes;
    const label = (this.#nodes[node * FIELDS + LABEL] as number) >>> 0;
    const length = octetAt(bytes, at);
    if (octetAt(mine, label) !== length) return false;
    for (let index = 1; index <= length; index++) {
      if (octetAt(mine, label + index) !== octetAt(FOLD, octetAt(bytes, at + index))) return false;
    }
    return true;
  }

  #isUsed(node: number): boolean {
    return this.#nodes[node * FIELDS + RRSET] !== FREED;
  }

  #enter(node: number): void {
    enter(this.#slots, this.#nodes, node);
  }

  /** Closes the gap, so that probes need no tombstones. */
  #leave(node: number): void {
    const mask = this.#slots.length - 1;
    let gap = spread(this.#nodes[node * FIELDS + HASH] as number) & mask;
    while (this.#slots[gap] !== node + 1) gap = (gap + 1) & mask;
    for (let slot = (gap + 1) & mask; this.#slots[slot] !== 0; slot = (slot + 1) & mask) {
      const entry = this.#slots[slot] as number;
      const home = spread(this.#nodes[(entry - 1) * FIELDS + HASH] as number) & mask;
      if (((slot - home) & mask) < ((slot - gap) & mask)) continue;
      this.#slots[gap] = entry;
      gap = slot;
    }
    this.#slots[gap] = 0;
  }

  #rehash(length: number): void {
    this.#slots = int32(length);
    for (let node = APEX + 1; node < this.#used; node++) if (this.#isUsed(node)) this.#enter(node);
  }
}

const FREED = -2;
/** The first index of pending nodes; the others follow below it. */
const PENDING = -3;

function enter(slots: Int32Array, nodes: Int32Array, node: number): void {
  const mask = slots.length - 1;
  let slot = spread(nodes[node * FIELDS + HASH] as number) & mask;
  while (slots[slot] !== 0) slot = (slot + 1) & mask;
  slots[slot] = node + 1;
}

/** The low bits vary least in the last step of the hash, so the high ones are mixed in. */
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
