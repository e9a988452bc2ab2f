/**
 * Entries by name: finds those at and below a name without visiting the others. A node stands for an ancestor of
 * names, identified by its hash alone: names whose hashes collide share a node, and a caller that looks for entries
 * compares their names anyway. Not every ancestor has a node: below the sixth label the distances grow, so that a
 * reverse name of IPv6 with its 34 labels makes 11 nodes instead of 33.
 */
import { FOLD } from "../../dns/octets.ts";
import type { BlockMemory } from "../../lib/collections/slab/block-memory.ts";
import { UNIT_OCTETS, UNIT_WORDS } from "../../lib/collections/slab/block-memory.ts";
import { roundUp, type SharedParts } from "../../lib/collections/slab/shared-parts.ts";
import { SlabFault } from "../../lib/collections/slab/slab-fault.ts";
import { HEAD_OCTETS, Head, Key, NAME_START } from "../../plugin/packed/entry-layout.ts";
import { MENTION_OCTETS, Mention } from "./mention-layout.ts";

/** Numbers of labels of the ancestors that have nodes. */
const DEPTHS = [0, 1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64, 96];
const MAX_LABELS = 127;

/** Words of a node. */
const HASH = 0;
const PARENT = 1;
const FIRST_CHILD = 2;
const NEXT = 3;
const PREVIOUS = 4;
const FIRST_ENTRY = 5;
const NEXT_IN_BUCKET = 6;
const FIRST_MENTION = 7;
const NODE_WORDS = 8;

const ROOT = 0;
const NONE = -1;

/** Words of the part `control`. */
const FREE = 0;
const FRESH = 1;
/** Mentions that are linked. */
const MENTIONS = 2;
const CONTROL_WORDS = 3;

/** Entries whose names share a bucket. A flood of types for one name evicts the oldest of them. */
const MAX_OF_NAME = 64;

export class NameTree {
  readonly #blocks: BlockMemory;
  readonly #maxNodes: number;
  /** Bound for the number of entries. */
  readonly #capacity: number;
  readonly #control: Int32Array;
  readonly #nodes: Int32Array;
  /** First node of each bucket plus one, by hash and parent. */
  readonly #nodeBuckets: Int32Array;
  /** First entry of each bucket plus one, by the hash of the whole name. */
  readonly #nameBuckets: Int32Array;
  readonly #multiplier: number;
  readonly #seed: number;
  /** Hashes of the last n labels of the name that was hashed last. */
  readonly #hashes = new Int32Array(MAX_LABELS + 1);
  readonly #starts = new Uint8Array(MAX_LABELS + 1);

  /** Takes a secret because clients choose the names. */
  constructor(parts: SharedParts, blocks: BlockMemory, capacity: number, secret: number) {
    this.#blocks = blocks;
    this.#maxNodes = maxNodes(capacity);
    this.#capacity = capacity;
    this.#control = parts.int32(CONTROL_WORDS);
    this.#nodes = parts.int32(NODE_WORDS * this.#maxNodes);
    this.#nodeBuckets = parts.int32(bucketsFor(this.#maxNodes));
    this.#nameBuckets = parts.int32(bucketsFor(capacity));
    this.#multiplier = (secret ^ 0x5bd1_e995) | 1;
    this.#seed = Math.imul(secret, 0x9e37_79b1);
  }

  static octetsFor(capacity: number): number {
    const nodes = maxNodes(capacity);
    return (
      roundUp(4 * CONTROL_WORDS) +
      roundUp(4 * NODE_WORDS * nodes) +
      roundUp(4 * bucketsFor(nodes)) +
      roundUp(4 * bucketsFor(capacity))
    );
  }

  /**
   * Empties the tree, whatever it holds. `isNew` says that nothing was written yet; memory of zeros is not an empty
   * tree.
   */
  clear(isNew: boolean): void {
    if (!isNew) {
      this.#nodeBuckets.fill(0);
      this.#nameBuckets.fill(0);
    }
    this.#nodes.fill(NONE, 0, NODE_WORDS);
    this.#control[FREE] = NONE;
    this.#control[FRESH] = ROOT + 1;
    this.#control[MENTIONS] = 0;
  }

  /** Bytes of the nodes that were ever in use. */
  get octetsTouched(): number {
    return (this.#control[FRESH] as number) * NODE_WORDS * 4;
  }

  /**
   * Links an entry whose name is written. Returns false when there is no free node: the caller must evict other
   * entries first.
   */
  link(unit: number): boolean {
    const labels = this.#hashEntry(unit);
    const node = this.#nodeAbove(labels);
    if (node === NONE) return false;
    const { words } = this.#blocks;
    const head = unit * UNIT_WORDS;
    const next = this.#get(node, FIRST_ENTRY);
    words[head + Head.NODE] = node;
    words[head + Head.NEXT_OF_NODE] = next;
    words[head + Head.PREVIOUS_OF_NODE] = NONE;
    if (next !== NONE) words[next * UNIT_WORDS + Head.PREVIOUS_OF_NODE] = unit;
    this.#set(node, FIRST_ENTRY, unit);
    const bucket = this.#bucketOfName(labels);
    words[head + Head.NEXT_OF_NAME] = this.#nameBuckets[bucket] as number;
    this.#nameBuckets[bucket] = unit + 1;
    return true;
  }

  /** Removes an entry. */
  unlink(unit: number): void {
    const { words } = this.#blocks;
    const head = unit * UNIT_WORDS;
    const node = words[head + Head.NODE] as number;
    const next = words[head + Head.NEXT_OF_NODE] as number;
    const previous = words[head + Head.PREVIOUS_OF_NODE] as number;
    if (previous === NONE) this.#set(node, FIRST_ENTRY, next);
    else words[previous * UNIT_WORDS + Head.NEXT_OF_NODE] = next;
    if (next !== NONE) words[next * UNIT_WORDS + Head.PREVIOUS_OF_NODE] = previous;
    this.#prune(node);

    const bucket = this.#bucketOfName(this.#hashEntry(unit));
    const following = words[head + Head.NEXT_OF_NAME] as number;
    let link = this.#nameBuckets[bucket] as number;
    if (link === unit + 1) {
      this.#nameBuckets[bucket] = following;
      return;
    }
    for (let left = this.#capacity; link !== 0; left--) {
      if (left < 0) throw new SlabFault("the entries of a name have no end");
      const at = (link - 1) * UNIT_WORDS + Head.NEXT_OF_NAME;
      link = words[at] as number;
      if (link === unit + 1) {
        words[at] = following;
        return;
      }
    }
  }

  /** The entry to evict before another one for the same name is linked, -1 if there is room. */
  surplusFor(name: Uint8Array, start: number): number {
    let link = this.#nameBuckets[this.#bucketOfName(this.#hash(name, start))] as number;
    for (let count = 1; link !== 0; count++) {
      if (count === MAX_OF_NAME) return link - 1;
      link = this.#blocks.words[(link - 1) * UNIT_WORDS + Head.NEXT_OF_NAME] as number;
    }
    return NONE;
  }

  /**
   * Finds entries for a name and for all names below it. @param name in wire form and lower case @param found
   * receives their units @returns how many there are; if `found` is full there may be more
   */
  collect(name: Uint8Array, found: Int32Array): number {
    const labels = this.#hash(name, 0);
    let count = 0;
    if (labels > 0) {
      let link = this.#nameBuckets[this.#bucketOfName(labels)] as number;
      for (let left = this.#capacity; link !== 0 && count < found.length; left--) {
        if (left < 0) throw new SlabFault("the entries of a name have no end");
        if (this.#endsIn(link - 1, name, true)) found[count++] = link - 1;
        link = this.#blocks.words[(link - 1) * UNIT_WORDS + Head.NEXT_OF_NAME] as number;
      }
    }
    const top = this.#known(labels);
    return top === NONE ? count : this.#collectBelow(top, name, labels === 0, found, count);
  }

  #collectBelow(top: number, name: Uint8Array, all: boolean, found: Int32Array, first: number): number {
    let count = first;
    // Each node and each entry is visited once.
    let left = this.#maxNodes + this.#capacity;
    for (let node = top; node !== NONE; node = this.#following(node, top)) {
      let entry = this.#get(node, FIRST_ENTRY);
      while (entry !== NONE) {
        if (count === found.length) return count;
        if (left-- < 0) throw new SlabFault("the tree of names has no end");
        if (all || this.#endsIn(entry, name, false)) found[count++] = entry;
        entry = this.#blocks.words[entry * UNIT_WORDS + Head.NEXT_OF_NODE] as number;
      }
      if (left-- < 0) throw new SlabFault("the tree of names has no end");
    }
    return count;
  }

  /** The node after `node` among those at and below `top`; -1 after the last. */
  #following(node: number, top: number): number {
    const child = this.#get(node, FIRST_CHILD);
    if (child !== NONE) return child;
    let at = node;
    let left = DEPTHS.length;
    while (at !== top && this.#get(at, NEXT) === NONE) {
      if (left-- === 0) throw new SlabFault("a node has no root");
      at = this.#get(at, PARENT);
    }
    return at === top ? NONE : this.#get(at, NEXT);
  }

  /** Links a mention at the node of its own name, or at the nearest ancestor's. Returns false as {@link link} does. */
  linkMention(mention: number): boolean {
    const labels = this.#hash(this.#blocks.octets, mention * UNIT_OCTETS + MENTION_OCTETS);
    const node = this.#nodeAbove(labels + 1);
    if (node === NONE) return false;
    const { words } = this.#blocks;
    const head = mention * UNIT_WORDS;
    const next = this.#get(node, FIRST_MENTION);
    words[head + Mention.NODE] = node;
    words[head + Mention.NEXT] = next;
    words[head + Mention.PREVIOUS] = NONE;
    if (next !== NONE) words[next * UNIT_WORDS + Mention.PREVIOUS] = mention;
    this.#set(node, FIRST_MENTION, mention);
    this.#control[MENTIONS] = (this.#control[MENTIONS] as number) + 1;
    return true;
  }

  unlinkMention(mention: number): void {
    const { words } = this.#blocks;
    const head = mention * UNIT_WORDS;
    const node = words[head + Mention.NODE] as number;
    const next = words[head + Mention.NEXT] as number;
    const previous = words[head + Mention.PREVIOUS] as number;
    if (previous === NONE) this.#set(node, FIRST_MENTION, next);
    else words[previous * UNIT_WORDS + Mention.NEXT] = next;
    if (next !== NONE) words[next * UNIT_WORDS + Mention.PREVIOUS] = previous;
    words[head + Mention.NODE] = NONE;
    this.#control[MENTIONS] = (this.#control[MENTIONS] as number) - 1;
    this.#prune(node);
  }

  /**
   * Like {@link collect}, but finds the entries that mention a name at or below `name`: an entry as often as it
   * mentions some.
   */
  collectMentioning(name: Uint8Array, found: Int32Array): number {
    let left = this.#control[MENTIONS] as number;
    const top = left === 0 ? NONE : this.#known(this.#hash(name, 0));
    const { words } = this.#blocks;
    let count = 0;
    let nodes = this.#maxNodes;
    for (let node = top; node !== NONE; node = this.#following(node, top)) {
      let mention = this.#get(node, FIRST_MENTION);
      while (mention !== NONE) {
        if (count === found.length) return count;
        if (left-- <= 0) throw new SlabFault("the tree of names has no end");
        const head = mention * UNIT_WORDS;
        const length = words[head + Mention.LENGTH] as number;
        if (length >= name.length && this.#stands(name, mention * UNIT_OCTETS + MENTION_OCTETS, length))
          found[count++] = words[head + Mention.ENTRY] as number;
        mention = words[head + Mention.NEXT] as number;
      }
      if (nodes-- < 0) throw new SlabFault("the tree of names has no end");
    }
    return count;
  }

  /** Whether the entry's name equals `name`, or lies below it if not `whole`. */
  #endsIn(unit: number, name: Uint8Array, whole: boolean): boolean {
    const { words } = this.#blocks;
    const length = ((words[unit * UNIT_WORDS + Head.KEY] as number) & Key.NAME_END) - NAME_START;
    if (whole ? length !== name.length : length <= name.length) return false;
    return this.#stands(name, unit * UNIT_OCTETS + HEAD_OCTETS, length);
  }

  /** Whether a name is a suffix of another name that is at least as long. */
  #stands(name: Uint8Array, start: number, length: number): boolean {
    const { octets } = this.#blocks;
    let at = start;
    const tail = start + length - name.length;
    while (at < tail) at += (octets[at] as number) + 1;
    if (at !== tail) return false;
    for (let index = 0; index < name.length; index++) if (octets[at + index] !== name[index]) return false;
    return true;
  }

  /** The nearest node that covers the first `labels` labels of the name hashed last. */
  #known(labels: number): number {
    let node = ROOT;
    for (let index = 1; index < DEPTHS.length; index++) {
      const depth = DEPTHS[index] as number;
      if (depth > labels) break;
      node = this.#child(node, this.#hashes[depth] as number);
      if (node === NONE) return NONE;
    }
    return node;
  }

  /** The node of the nearest ancestor that gets one. Creates missing nodes; -1 if there is no free node. */
  #nodeAbove(labels: number): number {
    let node = ROOT;
    for (let index = 1; index < DEPTHS.length; index++) {
      const depth = DEPTHS[index] as number;
      if (depth >= labels) break;
      const hash = this.#hashes[depth] as number;
      const known = this.#child(node, hash);
      const child = known === NONE ? this.#add(node, hash) : known;
      if (child === NONE) {
        this.#prune(node);
        return NONE;
      }
      node = child;
    }
    return node;
  }

  #child(parent: number, hash: number): number {
    let link = this.#nodeBuckets[this.#bucketOfNode(parent, hash)] as number;
    for (let left = this.#maxNodes; link !== 0; left--) {
      if (left < 0) throw new SlabFault("a chain of nodes has no end");
      const node = link - 1;
      if (this.#get(node, HASH) === hash && this.#get(node, PARENT) === parent) return node;
      link = this.#get(node, NEXT_IN_BUCKET);
    }
    return NONE;
  }

  #add(parent: number, hash: number): number {
    let node = this.#control[FREE] as number;
    if (node !== NONE) this.#control[FREE] = this.#get(node, NEXT);
    else {
      node = this.#control[FRESH] as number;
      if (node === this.#maxNodes) return NONE;
      this.#control[FRESH] = node + 1;
    }
    const next = this.#get(parent, FIRST_CHILD);
    const bucket = this.#bucketOfNode(parent, hash);
    this.#set(node, HASH, hash);
    this.#set(node, PARENT, parent);
    this.#set(node, FIRST_CHILD, NONE);
    this.#set(node, NEXT, next);
    this.#set(node, PREVIOUS, NONE);
    this.#set(node, FIRST_ENTRY, NONE);
    this.#set(node, FIRST_MENTION, NONE);
    this.#set(node, NEXT_IN_BUCKET, this.#nodeBuckets[bucket] as number);
    if (next !== NONE) this.#set(next, PREVIOUS, node);
    this.#set(parent, FIRST_CHILD, node);
    this.#nodeBuckets[bucket] = node + 1;
    return node;
  }

  /** Frees a node without children and entries, and its ancestors in the same state. */
  #prune(from: number): void {
    let node = from;
    let left = DEPTHS.length;
    while (node !== ROOT && this.#isBare(node)) {
      if (left-- === 0) throw new SlabFault("a node has no root");
      const parent = this.#get(node, PARENT);
      const next = this.#get(node, NEXT);
      const previous = this.#get(node, PREVIOUS);
      if (previous === NONE) this.#set(parent, FIRST_CHILD, next);
      else this.#set(previous, NEXT, next);
      if (next !== NONE) this.#set(next, PREVIOUS, previous);
      this.#unlinkFromBucket(node, this.#bucketOfNode(parent, this.#get(node, HASH)));
      this.#set(node, NEXT, this.#control[FREE] as number);
      this.#control[FREE] = node;
      node = parent;
    }
  }

  #isBare(node: number): boolean {
    return (
      this.#get(node, FIRST_ENTRY) === NONE &&
      this.#get(node, FIRST_MENTION) === NONE &&
      this.#get(node, FIRST_CHILD) === NONE
    );
  }

  #unlinkFromBucket(node: number, bucket: number): void {
    const following = this.#get(node, NEXT_IN_BUCKET);
    let link = this.#nodeBuckets[bucket] as number;
    if (link === node + 1) {
      this.#nodeBuckets[bucket] = following;
      return;
    }
    for (let left = this.#maxNodes; link !== 0; left--) {
      if (left < 0) throw new SlabFault("a chain of nodes has no end");
      const other = link - 1;
      link = this.#get(other, NEXT_IN_BUCKET);
      if (link === node + 1) this.#set(other, NEXT_IN_BUCKET, following);
    }
  }

  #hashEntry(unit: number): number {
    return this.#hash(this.#blocks.octets, unit * UNIT_OCTETS + HEAD_OCTETS);
  }

  /** Hashes a name and all its ancestors in one pass from its end. Returns its number of labels. */
  #hash(octets: Uint8Array, start: number): number {
    const starts = this.#starts;
    const multiplier = this.#multiplier | 0;
    let labels = 0;
    let end = start;
    for (let length = octets[end] as number; length !== 0; length = octets[end] as number) {
      if (labels === MAX_LABELS) throw new SlabFault("a name has no end");
      starts[labels++] = end - start;
      end += length + 1;
    }
    let hash = this.#seed | 0;
    for (let label = labels - 1; label >= 0; label--) {
      const first = start + (starts[label] as number);
      for (let at = first; at < end; at++) {
        hash = Math.imul(hash ^ (FOLD[octets[at] as number] as number), multiplier);
        hash = (hash << 13) | (hash >>> 19);
      }
      end = first;
      this.#hashes[labels - label] = hash;
    }
    return labels;
  }

  #bucketOfName(labels: number): number {
    return this.#spread(labels === 0 ? 0 : (this.#hashes[labels] as number)) & (this.#nameBuckets.length - 1);
  }

  #bucketOfNode(parent: number, hash: number): number {
    return this.#spread(hash ^ Math.imul(parent, 0x9e37_79b1)) & (this.#nodeBuckets.length - 1);
  }

  #spread(hash: number): number {
    const mixed = Math.imul(hash ^ (hash >>> 15), 0x2c1b_3c6d);
    return mixed ^ (mixed >>> 13);
  }

  #get(node: number, field: number): number {
    return this.#nodes[node * NODE_WORDS + field] as number;
  }

  #set(node: number, field: number, value: number): void {
    this.#nodes[node * NODE_WORDS + field] = value;
  }
}

/** Most names share their ancestors; otherwise names evict each other. */
function maxNodes(capacity: number): number {
  return capacity + 1024;
}

function bucketsFor(entries: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(2, entries)));
}
