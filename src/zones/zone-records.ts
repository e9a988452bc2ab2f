/**
 * The records of a zone: RRsets hang on the nodes of its names. An RRset is a number; its data stand one after the other in a buffer of
 * octets, each behind its length. Nothing here is an object per record, so that the garbage collector has nothing to walk.
 */
import { MAX_NAME_OCTETS, Name } from "../dns/name.ts";
import { FOLD, octetAt, readU16, writeU16 } from "../dns/octets.ts";
import { RecordType } from "../dns/type-names.ts";
import { APEX, NameTree, NO_NODE } from "./name-tree.ts";
import { copied, discard, grown, grownLength, moved, OctetHeap, reserved, trimmed } from "./octet-heap.ts";
import { foldNames } from "./rdata-names.ts";

export const NO_RRSET = -1;

/** What became of a record that was to be added. */
export const Added = { NEW: 0, DUPLICATE: 1, OUT_OF_ZONE: 2, TOO_LARGE: 3 } as const;
export type AddedResult = (typeof Added)[keyof typeof Added];

/** No message holds more. */
const MAX_RRSET_OCTETS = 65_535;
/** RDATA stands behind its length. */
const LENGTH_OCTETS = 2;

/** Octets that are moved in no time. */
const SMALL = 1024 * 1024;
/** New nodes that a record may need; names with more new labels are rare. */
const LABELS = 2;
/** Records that are added between two pauses, and their octets; where there are more, something large has to be moved. */
const COMING = 1_500;
const COMING_OCTETS = 128 * 1024;

const int32 = (length: number): Int32Array => new Int32Array(length);
/** Fields of an RRset, side by side as those of a node. */
const TYPE = 0;
const TTL = 1;
const NEXT = 2;
const DATA = 3;
const EXTENT = 4;
const FIELDS = 5;
/** In EXTENT beside size and count: the data have room up to the next power of two. A count has 15 bits: each record takes two octets. */
const PADDED = 0x8000_0000;

export class ZoneRecords {
  /** The apex in lower case. */
  readonly apex: Name;
  readonly heap: OctetHeap;
  readonly names: NameTree;
  /**
   * Five numbers for each RRset. TYPE: the type, and above it, for RRSIG, the type that is covered: signatures of each type are an RRset of
   * their own. EXTENT: octets of data, and above it the number of records.
   */
  #rrsets = int32(8 * FIELDS);
  #used = 0;
  #free = NO_RRSET;
  #recordCount = 0;
  readonly #incoming = new Uint8Array(MAX_RRSET_OCTETS);
  readonly #starts = new Uint8Array(128);

  constructor(apex: Name, heap: OctetHeap = new OctetHeap(), names: NameTree = new NameTree(heap)) {
    this.apex = apex.toLowerCase();
    this.heap = heap;
    this.names = names;
  }

  /** Gives back what is not in use, where that is much: growing leaves up to a third unused. Nothing may change meanwhile. */
  async trim(pause: () => Promise<void>): Promise<void> {
    await this.heap.trim(pause);
    await this.names.trim(pause);
    this.#rrsets = await trimmed(this.#rrsets, this.#used * FIELDS, int32, pause);
  }

  /** Gives all memory back, an array a turn, and holds nothing from the first one on. */
  async release(pause: () => Promise<void>): Promise<void> {
    const former = [this.heap.clear(), ...this.names.clear(), this.#rrsets];
    this.#rrsets = int32(8 * FIELDS);
    this.#used = 0;
    this.#free = NO_RRSET;
    this.#recordCount = 0;
    for (const array of former) {
      await pause();
      discard(array);
    }
  }

  /** Where all is large, makes room in portions for what is added between two pauses. Nothing may change meanwhile. */
  async makeRoom(pause: () => Promise<void>): Promise<void> {
    if (this.hasRoomFor(COMING, COMING_OCTETS)) return;
    await this.heap.makeRoom(COMING_OCTETS, pause);
    await this.names.makeRoom(COMING * LABELS, pause);
    const needed = (this.#used + COMING) * FIELDS;
    const length = grownLength(this.#rrsets, needed);
    if (needed > this.#rrsets.length)
      this.#rrsets = await moved(this.#rrsets, this.#used * FIELDS, int32, pause, length);
  }

  /** Makes room for as much as others have. */
  reserveAs(other: ZoneRecords): void {
    this.heap.reserve(other.heap.used);
    this.names.reserve(other.names.limit);
    this.#rrsets = reserved(this.#rrsets, other.#used * FIELDS, int32);
  }

  /** The same records in memory of their own, and room for more. In portions; nothing may change meanwhile. */
  async copy(pause: () => Promise<void>): Promise<ZoneRecords> {
    const heap = await this.heap.copy(pause);
    const copy = new ZoneRecords(this.apex, heap, await this.names.copy(heap, pause));
    copy.#rrsets = await copied(this.#rrsets, this.#used * FIELDS, int32, pause);
    copy.#used = this.#used;
    copy.#free = this.#free;
    copy.#recordCount = this.#recordCount;
    return copy;
  }

  /** Whether so many records of so many octets can come without anything that is large having to be moved. */
  hasRoomFor(records: number, octets: number): boolean {
    if (this.size < SMALL) return true;
    const rrsets = Math.floor(this.#rrsets.length / FIELDS) - this.#used;
    return rrsets >= records && this.names.room >= records * LABELS && this.heap.room >= octets;
  }

  get recordCount(): number {
    return this.#recordCount;
  }

  /** Octets of memory. */
  get size(): number {
    return this.heap.size + this.names.size + this.#rrsets.length * 4;
  }

  /** The node of a name, made if need be; NO_NODE for names that do not lie in the zone. */
  nodeFor(owner: Uint8Array, length: number, make: boolean): number {
    return this.#node(owner, 0, length, make);
  }

  /** The node of the name that stands at `bytes[at]`. */
  nodeAt(bytes: Uint8Array, at: number, length: number): number {
    return this.#node(bytes, at, length, false);
  }

  #node(bytes: Uint8Array, from: number, length: number, make: boolean): number {
    const apex = this.apex.wire;
    const below = length - apex.length;
    if (below < 0) return NO_NODE;
    for (let at = 0; at < apex.length; at++) {
      if (octetAt(FOLD, octetAt(bytes, from + below + at)) !== apex[at]) return NO_NODE;
    }
    const starts = this.#starts;
    let count = 0;
    let at = 0;
    for (; at < below; at += octetAt(bytes, from + at) + 1) starts[count++] = at;
    if (at !== below) return NO_NODE;
    let node = APEX;
    while (count > 0 && node !== NO_NODE) {
      const label = from + octetAt(starts, --count);
      node = make ? this.names.childOrNew(node, bytes, label) : this.names.child(node, bytes, label);
    }
    return node;
  }

  /** Whether the uncompressed name at `bytes[at]` is the apex or lies below it. */
  liesInZone(bytes: Uint8Array, at: number, length: number): boolean {
    const apex = this.apex.wire;
    let start = 0;
    while (length - start > apex.length) start += octetAt(bytes, at + start) + 1;
    if (length - start !== apex.length) return false;
    for (let index = 0; index < apex.length; index++) {
      if (octetAt(FOLD, octetAt(bytes, at + start + index)) !== apex[index]) return false;
    }
    return true;
  }

  /** The name of a node. */
  nodeName(node: number): Name {
    if (node === APEX) return this.apex;
    const wire = new Uint8Array(MAX_NAME_OCTETS);
    const end = this.names.writeLabels(node, wire, 0);
    wire.set(this.apex.wire, end);
    return Name.fromCheckedWire(wire.slice(0, end + this.apex.wire.length));
  }

  /** The RRset of a type at a node. For signatures see {@link signatures}. */
  rrset(node: number, type: number): number {
    let rrset = this.names.firstRrset(node);
    while (rrset >= 0 && this.type(rrset) !== type) rrset = this.next(rrset);
    return rrset;
  }

  /** The signatures over the RRset of a type at a node. */
  signatures(node: number, covered: number): number {
    let rrset = this.names.firstRrset(node);
    const kind = kindOf(RecordType.RRSIG, covered);
    while (rrset >= 0 && this.#rrsets[rrset * FIELDS + TYPE] !== kind) rrset = this.next(rrset);
    return rrset;
  }

  first(node: number): number {
    return this.names.firstRrset(node);
  }

  next(rrset: number): number {
    return this.#rrsets[rrset * FIELDS + NEXT] as number;
  }

  type(rrset: number): number {
    return (this.#rrsets[rrset * FIELDS + TYPE] as number) & 0xffff;
  }

  /** The type that signatures cover, 0 for other RRsets. */
  covered(rrset: number): number {
    return (this.#rrsets[rrset * FIELDS + TYPE] as number) >>> 16;
  }

  /** Seconds. */
  ttl(rrset: number): number {
    return (this.#rrsets[rrset * FIELDS + TTL] as number) >>> 0;
  }

  /** Records of the RRset. */
  count(rrset: number): number {
    return ((this.#rrsets[rrset * FIELDS + EXTENT] as number) >>> 16) & 0x7fff;
  }

  /** Where the first record stands in the heap: its length in two octets, then RDATA; the next one follows. */
  data(rrset: number): number {
    return (this.#rrsets[rrset * FIELDS + DATA] as number) >>> 0;
  }

  dataSize(rrset: number): number {
    return (this.#rrsets[rrset * FIELDS + EXTENT] as number) & 0xffff;
  }

  /** Adds a record. Where TTLs of an RRset differ, the smallest counts for all (RFC 2181 section 5.2). */
  add(
    owner: Uint8Array,
    ownerLength: number,
    type: number,
    ttl: number,
    rdata: Uint8Array,
    length: number,
  ): AddedResult {
    if (length > MAX_RRSET_OCTETS - LENGTH_OCTETS) return Added.TOO_LARGE;
    const node = this.nodeFor(owner, ownerLength, true);
    if (node === NO_NODE) return Added.OUT_OF_ZONE;
    const incoming = this.#take(type, rdata, length);
    const kind = kindOf(type, coveredType(type, incoming));
    let last = NO_RRSET;
    let rrset = this.names.firstRrset(node);
    while (rrset >= 0 && this.#rrsets[rrset * FIELDS + TYPE] !== kind) {
      last = rrset;
      rrset = this.next(rrset);
    }
    if (rrset < 0) {
      const made = this.#newRrset(kind, ttl);
      if (last === NO_RRSET) this.names.setFirstRrset(node, made);
      else this.#rrsets[last * FIELDS + NEXT] = made;
      const at = this.heap.allocate(LENGTH_OCTETS + length);
      this.#put(at, incoming, length);
      this.#rrsets[made * FIELDS + DATA] = at;
      this.#setExtent(made, LENGTH_OCTETS + length, 1, 0);
      this.#recordCount++;
      return Added.NEW;
    }
    if (ttl < this.ttl(rrset)) this.#rrsets[rrset * FIELDS + TTL] = ttl;
    if (this.#find(rrset, incoming, length) >= 0) return Added.DUPLICATE;
    const size = this.dataSize(rrset);
    const needed = size + LENGTH_OCTETS + length;
    if (needed > MAX_RRSET_OCTETS) return Added.TOO_LARGE;
    const at = this.#makeRoom(rrset, size, needed);
    this.#put(at + size, incoming, length);
    this.#setExtent(rrset, needed, this.count(rrset) + 1, this.#padding(rrset));
    this.#recordCount++;
    return Added.NEW;
  }

  /** @returns false where there was no such record */
  remove(owner: Uint8Array, ownerLength: number, type: number, rdata: Uint8Array, length: number): boolean {
    const node = this.nodeFor(owner, ownerLength, false);
    if (node === NO_NODE) return false;
    const incoming = this.#take(type, rdata, length);
    const kind = kindOf(type, coveredType(type, incoming));
    let before = NO_RRSET;
    let rrset = this.names.firstRrset(node);
    while (rrset >= 0 && this.#rrsets[rrset * FIELDS + TYPE] !== kind) {
      before = rrset;
      rrset = this.next(rrset);
    }
    const at = rrset < 0 ? -1 : this.#find(rrset, incoming, length);
    if (at < 0) return false;
    const { bytes } = this.heap;
    const start = this.data(rrset);
    const size = this.dataSize(rrset);
    const removed = LENGTH_OCTETS + length;
    this.#recordCount--;
    if (this.count(rrset) === 1) {
      this.#unlink(node, rrset, before);
      return true;
    }
    const room = this.#capacity(rrset);
    bytes.copyWithin(at, at + removed, start + size);
    this.#setExtent(rrset, size - removed, this.count(rrset) - 1, this.#padding(rrset));
    // Without padding the capacity is the size: what lies behind it is lost.
    this.heap.garbage += room - this.#capacity(rrset);
    return true;
  }

  /** Whether there is such a record with this TTL. RDATA stand at `rdata[at]`, names in it in lower case. */
  holds(
    owner: Uint8Array,
    ownerLength: number,
    type: number,
    ttl: number,
    rdata: Uint8Array,
    at: number,
    length: number,
  ): boolean {
    const node = this.nodeFor(owner, ownerLength, false);
    if (node === NO_NODE) return false;
    const rrset =
      type === RecordType.RRSIG ? this.signatures(node, readU16(rdata, at)) : this.rrset(node, type);
    return rrset >= 0 && this.ttl(rrset) === ttl && this.#find(rrset, rdata, length, at) >= 0;
  }

  /** RRsets have numbers below it. */
  get rrsetLimit(): number {
    return this.#used;
  }

  /** The RRset that {@link locate} found last. */
  located: number = NO_RRSET;

  /** Where a record stands in the heap, behind its length; -1 for nowhere. Its RRset is then {@link located}. */
  locate(owner: Uint8Array, ownerLength: number, type: number, rdata: Uint8Array, length: number): number {
    const node = this.nodeFor(owner, ownerLength, false);
    if (node === NO_NODE) return -1;
    const incoming = this.#take(type, rdata, length);
    const rrset =
      type === RecordType.RRSIG ? this.signatures(node, readU16(incoming, 0)) : this.rrset(node, type);
    if (rrset < 0) return -1;
    this.located = rrset;
    return this.#find(rrset, incoming, length);
  }

  /** RDATA as they are kept: names of old types in lower case. */
  foldedData(type: number, rdata: Uint8Array, length: number): Uint8Array {
    return this.#take(type, rdata, length).slice(0, length);
  }

  /** Takes an RRset with all of its records away. */
  removeRrset(node: number, rrset: number): void {
    let before = NO_RRSET;
    for (let at = this.names.firstRrset(node); at !== rrset; at = this.next(at)) before = at;
    this.#recordCount -= this.count(rrset);
    this.#unlink(node, rrset, before);
  }

  /** Where the record stands within its RRset's data, -1 for nowhere. `rdata` is in lower case where that counts. */
  #find(rrset: number, rdata: Uint8Array, length: number, from = 0): number {
    const { bytes } = this.heap;
    let at = this.data(rrset);
    const end = at + this.dataSize(rrset);
    while (at < end) {
      const there = readU16(bytes, at);
      if (there === length) {
        let index = 0;
        while (index < length && bytes[at + LENGTH_OCTETS + index] === rdata[from + index]) index++;
        if (index === length) return at;
      }
      at += LENGTH_OCTETS + there;
    }
    return -1;
  }

  #take(type: number, rdata: Uint8Array, length: number): Uint8Array {
    const incoming = this.#incoming;
    for (let at = 0; at < length; at++) incoming[at] = octetAt(rdata, at);
    if (length > 0) foldNames(type, incoming, 0);
    return incoming;
  }

  #put(at: number, rdata: Uint8Array, length: number): void {
    const { bytes } = this.heap;
    writeU16(bytes, at, length);
    for (let index = 0; index < length; index++) bytes[at + LENGTH_OCTETS + index] = octetAt(rdata, index);
  }

  #capacity(rrset: number): number {
    const size = this.dataSize(rrset);
    return this.#padding(rrset) === 0 ? size : powerOfTwo(size);
  }

  /** Gives an RRset room for `needed` octets, and returns where it stands now. */
  #makeRoom(rrset: number, size: number, needed: number): number {
    const at = this.data(rrset);
    const room = this.#capacity(rrset);
    if (needed <= room) return at;
    if (this.#padding(rrset) === 0 && this.heap.isLast(at, size)) {
      this.heap.allocate(needed - size);
      return at;
    }
    const moved = this.heap.allocate(powerOfTwo(needed));
    this.heap.bytes.copyWithin(moved, at, at + size);
    this.heap.garbage += room;
    this.#setExtent(rrset, size, this.count(rrset), PADDED);
    this.#rrsets[rrset * FIELDS + DATA] = moved;
    return moved;
  }

  #newRrset(kind: number, ttl: number): number {
    let rrset = this.#free;
    if (rrset !== NO_RRSET) this.#free = this.next(rrset);
    else {
      if ((this.#used + 1) * FIELDS > this.#rrsets.length) this.#rrsets = grown(this.#rrsets, int32);
      rrset = this.#used++;
    }
    const at = rrset * FIELDS;
    this.#rrsets[at + TYPE] = kind;
    this.#rrsets[at + TTL] = ttl;
    this.#rrsets[at + NEXT] = NO_RRSET;
    return rrset;
  }

  #padding(rrset: number): number {
    return (this.#rrsets[rrset * FIELDS + EXTENT] as number) & PADDED;
  }

  #setExtent(rrset: number, size: number, count: number, padding: number): void {
    this.#rrsets[rrset * FIELDS + EXTENT] = padding | (count << 16) | size;
  }

  #unlink(node: number, rrset: number, before: number): void {
    const next = this.next(rrset);
    if (before === NO_RRSET) this.names.setFirstRrset(node, next);
    else this.#rrsets[before * FIELDS + NEXT] = next;
    this.heap.garbage += this.#capacity(rrset);
    this.#rrsets[rrset * FIELDS + NEXT] = this.#free;
    this.#free = rrset;
    this.names.prune(node);
  }
}

function coveredType(type: number, rdata: Uint8Array): number {
  return type === RecordType.RRSIG ? readU16(rdata, 0) : 0;
}

function kindOf(type: number, covered: number): number {
  return type | (covered << 16);
}

function powerOfTwo(size: number): number {
  return 1 << (32 - Math.clz32(size - 1));
}
