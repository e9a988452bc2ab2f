/**
 * Keys and values of etcd as bytes, in a tree by their slashes, because SkyDNS asks for "all below this". Nodes are numbers in
 * typed arrays, texts lie in an arena, and no key is an object.
 */
import { OctetArena } from "../../lib/collections/octet-arena.ts";

/** The number of a node; 0 is the root, for the empty key. */
type Node = number;

const NONE = -1;
const SLASH = 0x2f;

/** Columns of the table of nodes, each a typed array. */
const COLUMNS = [
  "parent",
  "firstChild",
  "next",
  "previous",
  "hashNext",
  "hash",
  "label",
  "labelLength",
  "value",
  "valueLength",
  "lease",
  "mark",
] as const;
type Column = (typeof COLUMNS)[number];

export interface Entry {
  /** The whole key. */
  readonly key: string;
  /** Valid until the tree changes. */
  readonly value: Buffer;
  /** As given to {@link KeyTree.set}; -1 for none. */
  readonly lease: number;
}

export class KeyTree {
  readonly #arena = new OctetArena();
  #columns: Record<Column, Int32Array> = makeColumns(64);
  #buckets = new Int32Array(64).fill(NONE);
  #nodes = 1;
  #freeNode: Node = NONE;
  #size = 0;
  #mark = 0;

  constructor() {
    this.#clear(0);
  }

  /** Keys with a value. */
  get size(): number {
    return this.#size;
  }

  /** Allocated bytes. */
  get octets(): number {
    return this.#arena.reservedOctets + COLUMNS.length * 4 * this.#columns.parent.length;
  }

  /** @param lease a number chosen by the caller, -1 for none */
  set(key: Uint8Array, value: Uint8Array, lease = NONE): void {
    const node = this.#make(key);
    const { value: values, valueLength, lease: leases, mark } = this.#columns;
    this.#dropValue(node);
    values[node] = this.#arena.store(value);
    valueLength[node] = value.length;
    leases[node] = lease;
    mark[node] = this.#mark;
    this.#size++;
  }

  /** @returns whether the key had a value */
  delete(key: Uint8Array): boolean {
    const node = this.#find(key);
    if (node === NONE || !this.#dropValue(node)) return false;
    this.#prune(node);
    return true;
  }

  get(key: string): Entry | undefined {
    const node = this.#find(Buffer.from(key, "latin1"));
    return node === NONE ? undefined : this.#entry(node, key);
  }

  /** The lease of a key, -1 for none or no such key. */
  leaseOf(key: Uint8Array): number {
    const node = this.#find(key);
    return node === NONE || this.#at("value", node) === NONE ? NONE : this.#at("lease", node);
  }

  /** Whether there is any key below `key`, without `key` itself. */
  hasBelow(key: string): boolean {
    const node = this.#find(Buffer.from(key, "latin1"));
    return node !== NONE && this.#at("firstChild", node) !== NONE;
  }

  /**
   * The entries below `key`, without `key` itself, in etcd's order: by bytes.
   * @param limit maximum number of entries
   */
  below(key: string, limit: number): Entry[] {
    const top = this.#find(Buffer.from(key, "latin1"));
    const found: Entry[] = [];
    if (top === NONE) return found;
    const pending: { readonly node: Node; readonly key: string }[] = [{ node: top, key }];
    for (let visit = pending.pop(); visit !== undefined && found.length < limit; visit = pending.pop()) {
      for (let node = this.#at("firstChild", visit.node); node !== NONE; node = this.#at("next", node)) {
        const path = `${visit.key}/${this.#label(node)}`;
        const entry = this.#entry(node, path);
        if (entry !== undefined) found.push(entry);
        if (this.#at("firstChild", node) !== NONE) pending.push({ node, key: path });
      }
    }
    found.sort((one, other) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0));
    return found.length > limit ? found.slice(0, limit) : found;
  }

  /** Starts a listing: {@link sweep} deletes everything not set until then. */
  beginListing(): void {
    this.#mark = (this.#mark + 1) | 0;
  }

  /**
   * Ends a listing: deletes the keys that were not in it, and yields after every `portion` nodes so that the caller can give way.
   * @param dropped called for each deleted key, with its lease
   */
  *sweep(portion: number, dropped: (key: string, lease: number) => void): Generator<void> {
    for (let node = 1; node < this.#nodes; node++) {
      if (this.#at("value", node) !== NONE && this.#at("mark", node) !== this.#mark) {
        dropped(this.#keyOf(node), this.#at("lease", node));
        this.#dropValue(node);
        this.#prune(node);
      }
      if (node % portion === 0) yield;
    }
  }

  #at(column: Column, node: Node): number {
    return this.#columns[column][node] ?? NONE;
  }

  #label(node: Node): string {
    return this.#arena.view(this.#at("label", node), this.#at("labelLength", node)).toString("latin1");
  }

  #keyOf(node: Node): string {
    let key = "";
    for (let at = node; at > 0; at = this.#at("parent", at)) key = `/${this.#label(at)}${key}`;
    return key;
  }

  #entry(node: Node, key: string): Entry | undefined {
    const value = this.#at("value", node);
    if (value === NONE) return undefined;
    return {
      key,
      value: this.#arena.view(value, this.#at("valueLength", node)),
      lease: this.#at("lease", node),
    };
  }

  #find(key: Uint8Array): Node {
    let node: Node = 0;
    for (let start = firstSegment(key); start <= key.length; ) {
      const end = segmentEnd(key, start);
      node = this.#child(node, key, start, end);
      if (node === NONE) return NONE;
      start = end + 1;
    }
    return node;
  }

  #make(key: Uint8Array): Node {
    let node: Node = 0;
    for (let start = firstSegment(key); start <= key.length; ) {
      const end = segmentEnd(key, start);
      const child = this.#child(node, key, start, end);
      node = child === NONE ? this.#add(node, key, start, end) : child;
      start = end + 1;
    }
    return node;
  }

  #child(parent: Node, key: Uint8Array, start: number, end: number): Node {
    const hash = hashSegment(parent, key, start, end);
    let node = this.#buckets[hash & (this.#buckets.length - 1)] ?? NONE;
    for (; node !== NONE; node = this.#at("hashNext", node)) {
      if (this.#at("hash", node) !== hash || this.#at("parent", node) !== parent) continue;
      if (this.#arena.equals(this.#at("label", node), this.#at("labelLength", node), key, start, end))
        return node;
    }
    return NONE;
  }

  #add(parent: Node, key: Uint8Array, start: number, end: number): Node {
    const node = this.#allocate();
    const columns = this.#columns;
    const hash = hashSegment(parent, key, start, end);
    columns.parent[node] = parent;
    columns.hash[node] = hash;
    columns.label[node] = this.#arena.store(key.subarray(start, end));
    columns.labelLength[node] = end - start;
    const sibling = this.#at("firstChild", parent);
    columns.next[node] = sibling;
    if (sibling !== NONE) columns.previous[sibling] = node;
    columns.firstChild[parent] = node;
    this.#hook(node);
    return node;
  }

  #hook(node: Node): void {
    const bucket = this.#at("hash", node) & (this.#buckets.length - 1);
    this.#columns.hashNext[node] = this.#buckets[bucket] ?? NONE;
    this.#buckets[bucket] = node;
  }

  #unhook(node: Node): void {
    const bucket = this.#at("hash", node) & (this.#buckets.length - 1);
    const { hashNext } = this.#columns;
    if (this.#buckets[bucket] === node) {
      this.#buckets[bucket] = this.#at("hashNext", node);
      return;
    }
    let before = this.#buckets[bucket] ?? NONE;
    while (before !== NONE && this.#at("hashNext", before) !== node) before = this.#at("hashNext", before);
    if (before !== NONE) hashNext[before] = this.#at("hashNext", node);
  }

  /** Removes nodes without values and children, from this one upwards. */
  #prune(from: Node): void {
    let node = from;
    while (node > 0 && this.#at("firstChild", node) === NONE && this.#at("value", node) === NONE) {
      const { firstChild, next, previous, parent: parents } = this.#columns;
      const parent = this.#at("parent", node);
      const after = this.#at("next", node);
      const before = this.#at("previous", node);
      if (before === NONE) firstChild[parent] = after;
      else next[before] = after;
      if (after !== NONE) previous[after] = before;
      this.#unhook(node);
      this.#arena.release(this.#at("label", node), this.#at("labelLength", node));
      this.#clear(node);
      parents[node] = this.#freeNode;
      this.#freeNode = node;
      node = parent;
    }
  }

  #dropValue(node: Node): boolean {
    const value = this.#at("value", node);
    if (value === NONE) return false;
    this.#arena.release(value, this.#at("valueLength", node));
    this.#columns.value[node] = NONE;
    this.#columns.lease[node] = NONE;
    this.#size--;
    return true;
  }

  #allocate(): Node {
    const free = this.#freeNode;
    if (free !== NONE) {
      this.#freeNode = this.#at("parent", free);
      this.#clear(free);
      return free;
    }
    const node = this.#nodes++;
    if (node >= this.#columns.parent.length) this.#grow();
    this.#clear(node);
    return node;
  }

  #clear(node: Node): void {
    for (const column of COLUMNS) this.#columns[column][node] = NONE;
  }

  #grow(): void {
    const former = this.#columns;
    const columns = makeColumns(former.parent.length * 2);
    for (const column of COLUMNS) columns[column].set(former[column]);
    this.#columns = columns;
    this.#buckets = new Int32Array(columns.parent.length).fill(NONE);
    for (let node = 1; node < this.#nodes - 1; node++) {
      if (this.#at("label", node) !== NONE) this.#hook(node);
    }
  }
}

function makeColumns(length: number): Record<Column, Int32Array> {
  const make = () => new Int32Array(length);
  return {
    parent: make(),
    firstChild: make(),
    next: make(),
    previous: make(),
    hashNext: make(),
    hash: make(),
    label: make(),
    labelLength: make(),
    value: make(),
    valueLength: make(),
    lease: make(),
    mark: make(),
  };
}

/** Keys begin with a slash; it is added if missing. */
function firstSegment(key: Uint8Array): number {
  if (key.length === 0) return 1;
  return key[0] === SLASH ? 1 : 0;
}

function segmentEnd(key: Uint8Array, start: number): number {
  const end = key.indexOf(SLASH, start);
  return end < 0 ? key.length : end;
}

function hashSegment(parent: Node, key: Uint8Array, start: number, end: number): number {
  let hash = Math.imul(parent + 1, 0x9e3779b1);
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (key[at] ?? 0), 0x01000193);
  return hash ^ (hash >>> 15);
}
