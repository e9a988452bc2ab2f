/**
 * The records of a zone: RRsets are linked to the nodes of its names. An RRset is a number; its data are consecutive in a byte
 * buffer, each after its length. There is no object per record, so the garbage collector has nothing to walk.
 */
import { MAX_NAME_OCTETS, Name } from "../../dns/name.ts";
import { FOLD, octetAt, readU16, writeU16 } from "../../dns/octets.ts";
import { RecordType } from "../../dns/type-names.ts";
import { APEX, NO_NODE, ZoneTree } from "./name-tree.ts";
import { discard, OctetHeap } from "./octet-heap.ts";
import { EMPTY, Side, type SideNumber } from "./pending-nodes.ts";
import { areSameData } from "./rdata-names.ts";
import type { PlainRecord } from "./record-log.ts";
import { kindOf, NO_RRSET, PADDED, powerOfTwo, RrsetTable } from "./rrset-table.ts";

/** The result of adding a record. */
export const Added = { NEW: 0, DUPLICATE: 1, OUT_OF_ZONE: 2, TOO_LARGE: 3 } as const;
export type AddedResult = (typeof Added)[keyof typeof Added];

/** No message holds more. */
const MAX_RRSET_OCTETS = 65_535;
/** Before RDATA. */
const LENGTH_OCTETS = 2;

/** Bytes that are moved quickly. */
const SMALL = 1024 * 1024;
/** New nodes that a record may need; names with more new labels are rare. */
const LABELS = 2;
/** Records added between two pauses, and their bytes; with more, something large has to be moved. */
const COMING = 1_500;
const COMING_OCTETS = 128 * 1024;

export class ZoneRecords extends RrsetTable {
  /** The apex in lower case. */
  readonly apex: Name;
  readonly heap: OctetHeap;
  readonly names: ZoneTree;
  #recordCount = 0;
  /** While a change is pending, the count of the state before it. */
  #countBefore = 0;
  readonly #incoming = new Uint8Array(MAX_RRSET_OCTETS);
  readonly #starts = new Uint8Array(128);

  constructor(apex: Name, heap: OctetHeap = new OctetHeap(), names: ZoneTree = new ZoneTree(heap)) {
    super();
    this.apex = apex.toLowerCase();
    this.heap = heap;
    this.names = names;
  }

  /**
   * Frees unused memory if there is much of it: growing leaves up to a third unused. Nothing may change until the promise resolves.
   */
  async trim(pause: () => Promise<void>): Promise<void> {
    await this.heap.trim(pause);
    await this.names.trim(pause);
    await this.trimTable(pause);
  }

  /** Frees all memory, one array per turn. The records are empty from the first turn on. */
  async release(pause: () => Promise<void>): Promise<void> {
    const former = [this.heap.clear(), ...this.names.clear(), this.clearTable()];
    this.#recordCount = 0;
    for (const array of former) {
      await pause();
      discard(array);
    }
  }

  /**
   * For large records, makes room in portions for the additions between two pauses. Nothing may change until the promise resolves.
   */
  async makeRoom(pause: () => Promise<void>): Promise<void> {
    await this.names.pending?.makeRoom(COMING * LABELS, pause);
    if (this.hasRoomFor(COMING, COMING_OCTETS)) return;
    await this.heap.makeRoom(COMING_OCTETS, pause);
    await this.names.makeRoom(COMING * LABELS, pause);
    await this.makeTableRoom(COMING, pause);
  }

  /** Makes room for as much as `other` has. */
  reserveAs(other: ZoneRecords): void {
    this.heap.reserve(other.heap.used);
    this.names.reserve(other.names.limit);
    this.reserveTableAs(other);
  }

  /** Copies the records, with room for more. In portions; nothing may change until the promise resolves. */
  async copy(pause: () => Promise<void>): Promise<ZoneRecords> {
    const heap = await this.heap.copy(pause);
    const copy = new ZoneRecords(this.apex, heap, await this.names.copy(heap, pause));
    await copy.copyTableOf(this, pause);
    copy.#recordCount = this.#recordCount;
    return copy;
  }

  /** Whether this many records of this many bytes can be added without moving anything large. */
  hasRoomFor(records: number, octets: number): boolean {
    if (this.size < SMALL) return true;
    return this.tableRoom >= records && this.names.room >= records * LABELS && this.heap.room >= octets;
  }

  /** Bytes of memory in use. */
  get used(): number {
    return this.heap.used + this.names.used + this.tableUsed;
  }

  get recordCount(): number {
    return this.names.pending?.side === Side.BEFORE ? this.#countBefore : this.#recordCount;
  }

  /** Bytes of memory. */
  get size(): number {
    return this.heap.size + this.names.size + this.tableSize + (this.names.pending?.size ?? 0);
  }

  /** The node of a name, created on request; NO_NODE for names outside of the zone. */
  nodeFor(owner: Uint8Array, length: number, make: boolean): number {
    return this.#node(owner, 0, length, make);
  }

  /** The node of the name at `bytes[at]`. */
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

  /** Whether the uncompressed name at `bytes[at]` is the apex or below it. */
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
    while (rrset >= 0 && this.kind(rrset) !== kind) rrset = this.next(rrset);
    return rrset;
  }

  first(node: number): number {
    return this.names.firstRrset(node);
  }

  /** Adds a record. If TTLs of an RRset differ, the smallest applies to all (RFC 2181 section 5.2). */
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
    this.#touch(node);
    const incoming = this.#take(rdata, length);
    const kind = kindOf(type, coveredType(type, incoming));
    let last = NO_RRSET;
    let rrset = this.names.firstRrset(node);
    while (rrset >= 0 && this.kind(rrset) !== kind) {
      last = rrset;
      rrset = this.next(rrset);
    }
    if (rrset < 0) {
      const made = this.newRrset(kind, ttl);
      if (last === NO_RRSET) this.names.setFirstRrset(node, made);
      else this.setNext(last, made);
      const at = this.heap.allocate(LENGTH_OCTETS + length);
      this.#put(at, incoming, length);
      this.setData(made, at);
      this.setExtent(made, LENGTH_OCTETS + length, 1, 0);
      this.#recordCount++;
      return Added.NEW;
    }
    if (ttl < this.ttl(rrset)) this.setTtl(rrset, ttl);
    if (this.#find(rrset, incoming, length) >= 0) return Added.DUPLICATE;
    const size = this.dataSize(rrset);
    const needed = size + LENGTH_OCTETS + length;
    if (needed > MAX_RRSET_OCTETS) return Added.TOO_LARGE;
    const at = this.#makeRoom(node, rrset, size, needed);
    this.#put(at + size, incoming, length);
    this.setExtent(rrset, needed, this.count(rrset) + 1, this.padding(rrset));
    this.#recordCount++;
    return Added.NEW;
  }

  /** @returns false if there is no such record */
  remove(owner: Uint8Array, ownerLength: number, type: number, rdata: Uint8Array, length: number): boolean {
    if (this.locate(owner, ownerLength, type, rdata, length) < 0) return false;
    const node = this.nodeFor(owner, ownerLength, false);
    const rrset = this.#touched(node, this.located);
    const removed = LENGTH_OCTETS + length;
    if (this.count(rrset) === 1) {
      this.removeRrset(node, rrset);
      return true;
    }
    this.#recordCount--;
    const start = this.#own(node, rrset);
    const at = this.#find(rrset, this.#incoming, length);
    const size = this.dataSize(rrset);
    const room = this.capacity(rrset);
    this.heap.bytes.copyWithin(at, at + removed, start + size);
    this.setExtent(rrset, size - removed, this.count(rrset) - 1, this.padding(rrset));
    // Without padding the capacity is the size: the bytes after it are lost.
    const left = this.capacity(rrset);
    this.heap.free(start + left, room - left);
    return true;
  }

  /** Whether there is such a record with this TTL. */
  holds({ owner, type, ttl, rdata }: PlainRecord): boolean {
    const node = this.nodeFor(owner, owner.length, false);
    if (node === NO_NODE) return false;
    const rrset =
      type === RecordType.RRSIG ? this.signatures(node, readU16(rdata, 0)) : this.rrset(node, type);
    return rrset >= 0 && this.ttl(rrset) === ttl && this.#find(rrset, rdata, rdata.length) >= 0;
  }

  /** The RRset that {@link locate} found last. */
  located: number = NO_RRSET;

  /** Offset of a record in the heap, after its length; -1 if not found. Sets {@link located} to its RRset. */
  locate(owner: Uint8Array, ownerLength: number, type: number, rdata: Uint8Array, length: number): number {
    const node = this.nodeFor(owner, ownerLength, false);
    if (node === NO_NODE) return -1;
    const incoming = this.#take(rdata, length);
    const rrset =
      type === RecordType.RRSIG ? this.signatures(node, readU16(incoming, 0)) : this.rrset(node, type);
    if (rrset < 0) return -1;
    this.located = rrset;
    return this.#find(rrset, incoming, length);
  }

  /** Removes an RRset with all of its records. */
  removeRrset(node: number, rrset: number): void {
    const removed = this.#touched(node, rrset);
    let before = NO_RRSET;
    for (let at = this.names.firstRrset(node); at !== removed; at = this.next(at)) before = at;
    this.#recordCount -= this.count(removed);
    const next = this.next(removed);
    if (before === NO_RRSET) this.names.setFirstRrset(node, next);
    else this.setNext(before, next);
    if (!this.#isShared(node, removed)) this.heap.free(this.data(removed), this.capacity(removed));
    this.freeRrset(removed);
    this.names.prune(node);
  }

  /** From now on, changes are made and visible only with Side.AFTER. */
  begin(): void {
    this.#countBefore = this.#recordCount;
    this.names.begin();
  }

  /** Fixes some of the changed nodes to one of the sides. @returns whether these were the last */
  settle(from: number, count: number, side: SideNumber): boolean {
    const { pending } = this.names;
    if (pending === undefined) return true;
    const end = Math.min(from + count, pending.count);
    for (let place = from; place < end; place++) {
      const [before, after] = [pending.before(place), pending.after(place)];
      if (side === Side.AFTER) this.#freeList(before, after);
      else this.#freeList(after, before);
      this.names.settle(place, side);
    }
    if (end < pending.count) return false;
    if (side === Side.BEFORE) this.#recordCount = this.#countBefore;
    this.names.end();
    return true;
  }

  /** Frees the RRsets of one list, and their data unless the other list shares them. */
  #freeList(list: number, kept: number): void {
    for (let rrset = list; rrset >= 0; ) {
      const next = this.next(rrset);
      if (!this.#isIn(kept, this.data(rrset))) this.heap.free(this.data(rrset), this.capacity(rrset));
      this.freeRrset(rrset);
      rrset = next;
    }
  }

  /** Gives a node a second list before an invisible change. Data are shared until they change. */
  #touch(node: number): void {
    if (this.names.pending === undefined || this.names.isPending(node)) return;
    const before = this.names.firstRrset(node);
    let last = before < 0 ? EMPTY : this.twinOf(before);
    this.names.pend(node, last);
    if (before < 0) return;
    for (let rrset = this.next(before); rrset >= 0; rrset = this.next(rrset)) {
      const twin = this.twinOf(rrset);
      this.setNext(last, twin);
      last = twin;
    }
  }

  /** Like {@link #touch}. @returns the new number of the RRset */
  #touched(node: number, rrset: number): number {
    const kind = this.kind(rrset);
    this.#touch(node);
    let touched = this.names.firstRrset(node);
    while (this.kind(touched) !== kind) touched = this.next(touched);
    return touched;
  }

  /** Whether the data also belong to the previous state. */
  #isShared(node: number, rrset: number): boolean {
    const { pending } = this.names;
    return pending !== undefined && this.#isIn(pending.before(this.names.place(node)), this.data(rrset));
  }

  #isIn(list: number, data: number): boolean {
    for (let rrset = list; rrset >= 0; rrset = this.next(rrset)) if (this.data(rrset) === data) return true;
    return false;
  }

  /** Offset of an RRset's data that may be written to. */
  #own(node: number, rrset: number): number {
    const at = this.data(rrset);
    return this.#isShared(node, rrset) ? this.#move(rrset, this.dataSize(rrset), 0) : at;
  }

  /**
   * Offset of the record within its RRset's data, -1 if not found. Names of the old types are compared without regard to case.
   */
  #find(rrset: number, rdata: Uint8Array, length: number): number {
    const { bytes } = this.heap;
    let at = this.data(rrset);
    const end = at + this.dataSize(rrset);
    while (at < end) {
      const there = readU16(bytes, at);
      if (there === length) {
        let index = 0;
        while (index < length && bytes[at + LENGTH_OCTETS + index] === rdata[index]) index++;
        if (
          index === length ||
          areSameData(this.type(rrset), bytes, at + LENGTH_OCTETS, rdata, length, index)
        )
          return at;
      }
      at += LENGTH_OCTETS + there;
    }
    return -1;
  }

  #take(rdata: Uint8Array, length: number): Uint8Array {
    const incoming = this.#incoming;
    for (let at = 0; at < length; at++) incoming[at] = octetAt(rdata, at);
    return incoming;
  }

  #put(at: number, rdata: Uint8Array, length: number): void {
    const { bytes } = this.heap;
    writeU16(bytes, at, length);
    for (let index = 0; index < length; index++) bytes[at + LENGTH_OCTETS + index] = octetAt(rdata, index);
  }

  /** Gives an RRset room for `needed` bytes, and returns its new offset. */
  #makeRoom(node: number, rrset: number, size: number, needed: number): number {
    const at = this.data(rrset);
    if (this.#isShared(node, rrset)) return this.#move(rrset, powerOfTwo(needed), PADDED);
    const room = this.capacity(rrset);
    if (needed <= room) return at;
    if (this.padding(rrset) === 0 && this.heap.isLast(at, size)) {
      this.heap.extend(needed - size);
      return at;
    }
    const moved = this.#move(rrset, powerOfTwo(needed), PADDED);
    this.heap.free(at, room);
    return moved;
  }

  /** Copies the data of an RRset to a place with room for this many bytes. */
  #move(rrset: number, room: number, padding: number): number {
    const at = this.data(rrset);
    const size = this.dataSize(rrset);
    const moved = this.heap.allocate(room);
    this.heap.bytes.copyWithin(moved, at, at + size);
    this.setExtent(rrset, size, this.count(rrset), padding);
    this.setData(rrset, moved);
    return moved;
  }
}

function coveredType(type: number, rdata: Uint8Array): number {
  return type === RecordType.RRSIG ? readU16(rdata, 0) : 0;
}
