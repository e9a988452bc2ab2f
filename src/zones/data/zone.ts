/** A zone as it is served: its records, and the proofs that names do not exist. */
import type { Name } from "../../dns/name.ts";
import { readU32 } from "../../dns/octets.ts";
import { RecordType } from "../../dns/type-names.ts";
import { withoutRest } from "../../lib/time/turn-share.ts";
import type { AnswerTail } from "./answer-tail.ts";
import { eachRecord } from "./each-record.ts";
import { APEX } from "./name-tree.ts";
import { NodeOrder } from "./node-order.ts";
import { Side, type SideNumber } from "./pending-nodes.ts";
import { nameLength } from "./rdata-names.ts";
import type { PlainRecord } from "./record-log.ts";
import { NO_RRSET } from "./rrset-table.ts";
import type { ZoneChange } from "./zone-change.ts";
import { Added, type AddedResult, ZoneRecords } from "./zone-records.ts";

/** The fraction of unused bytes. */
const MOST_GARBAGE = 4;
/** Nodes between two pauses. */
const PORTION = 200;

export class Zone {
  readonly records: ZoneRecords;
  /** NSEC3 records and their signatures: their owners are hashes and not names of the zone (RFC 5155 section 7.2.8). */
  readonly hashed: ZoneRecords;
  /** Nodes with NSEC, in canonical order. */
  readonly nsec: NodeOrder;
  /** Nodes of {@link hashed}, in the order of their hashes. */
  readonly nsec3: NodeOrder;
  /** Ends of answers that were already written, kept by the answerer. Valid only while the served zone is unchanged. */
  readonly tails: (AnswerTail | undefined)[] = [undefined, undefined, undefined];

  constructor(
    apex: Name,
    records: ZoneRecords = new ZoneRecords(apex),
    hashed: ZoneRecords = new ZoneRecords(apex),
  ) {
    this.records = records;
    this.hashed = hashed;
    this.nsec = new NodeOrder(this.records, RecordType.NSEC);
    this.nsec3 = new NodeOrder(this.hashed, RecordType.NSEC3);
  }

  /**
   * A separate copy with room for more, to be changed and then put into {@link order}. In portions. Unused bytes are left out if
   * there are many.
   */
  async copy(pause: () => Promise<void>): Promise<Zone> {
    this.readers++;
    try {
      if (this.#isTidy && !this.isChanging)
        return new Zone(this.apex, await this.records.copy(pause), await this.hashed.copy(pause));
      const copy = new Zone(this.apex);
      copy.reserveAs(this);
      for (const records of [this.records, this.hashed]) await copy.#addAll(records, pause);
      return copy;
    } finally {
      this.readers--;
    }
  }

  async #addAll(records: ZoneRecords, pause: () => Promise<void>): Promise<void> {
    for (let node = APEX; node < records.names.limit; node++) {
      if (node % PORTION === PORTION - 1) await this.makeRoom(pause);
      eachRecord(records, node, records.first(node), (record) => void this.addPlain(record));
    }
  }

  /** Makes room for a zone that will be similar to another one. */
  reserveAs({ records, hashed }: Zone): void {
    this.records.reserveAs(records);
    this.hashed.reserveAs(hashed);
  }

  get apex(): Name {
    return this.records.apex;
  }

  /** The SOA's RRset; NO_RRSET before it is added. */
  get soa(): number {
    return this.records.rrset(APEX, RecordType.SOA);
  }

  get hasSoa(): boolean {
    return this.soa !== NO_RRSET;
  }

  /** The five numbers of the SOA record, whose RDATA begin with two names. */
  soaNumber(index: 0 | 1 | 2 | 3 | 4): number {
    const { bytes } = this.records.heap;
    let at = this.records.data(this.soa) + 2;
    at += nameLength(bytes, at);
    at += nameLength(bytes, at);
    return readU32(bytes, at + 4 * index);
  }

  get serial(): number {
    return this.soaNumber(0);
  }

  /** Seconds for which a negative answer may be cached (RFC 2308 section 5). */
  get negativeTtl(): number {
    return Math.min(this.records.ttl(this.soa), this.soaNumber(4));
  }

  get recordCount(): number {
    return this.records.recordCount + this.hashed.recordCount;
  }

  /** Bytes of memory in use. */
  get used(): number {
    return this.records.used + this.hashed.used + this.nsec.size + this.nsec3.size;
  }

  /** Bytes of memory. */
  get size(): number {
    return this.records.size + this.hashed.size + this.nsec.size + this.nsec3.size;
  }

  /** Readers that need the zone unchanged for a while: not even {@link begin} is allowed. */
  readers = 0;
  /** Outgoing transfers of the current and of the previous state. */
  #transfers = 0;
  #formerTransfers = 0;
  #onLastLeft: (() => void) | undefined;
  /** Users that serve it. */
  holders = 0;
  /** Number of changes since it is served. */
  version = 0;

  /** Frees the memory at once if the zone is no longer served or transferred, without waiting for V8. */
  async release(pause: () => Promise<void>): Promise<void> {
    if (this.holders > 0 || this.readers > 0 || this.#transfers > 0 || this.isChanging) return;
    // A promised copy is not started.
    this.version++;
    this.tails.fill(undefined);
    await this.records.release(pause);
    await this.hashed.release(pause);
  }

  /** Whether {@link amend} may be called: denials depend on all names, and a zone with much waste should be copied instead. */
  get isAmendable(): boolean {
    const isSigned = this.nsec.count > 0 || this.hashed.recordCount > 0;
    return !isSigned && this.#transfers === 0 && this.mayBegin;
  }

  /** Whether {@link begin} may be called. */
  get mayBegin(): boolean {
    return this.readers === 0 && !this.isChanging && this.#isTidy;
  }

  get #isTidy(): boolean {
    const { used, garbage } = this.records.heap;
    return garbage * MOST_GARBAGE <= used + 64 * 1024;
  }

  /** Whether a change is being prepared, or its old data are not freed yet. */
  get isChanging(): boolean {
    return this.records.names.pending !== undefined || this.hashed.names.pending !== undefined;
  }

  /** Begins a change of any size; see `zone-transition.ts`. */
  begin(): void {
    this.records.begin();
    this.hashed.begin();
  }

  /** Selects the state to see and change: before or after the change. Must be reset in the same turn. */
  see(side: SideNumber): void {
    for (const { names } of [this.records, this.hashed])
      if (names.pending !== undefined) names.pending.side = side;
  }

  /** From this turn on, the state after the change is the zone. */
  switchOver(nsec: Int32Array | undefined, nsec3: Int32Array | undefined): void {
    this.see(Side.AFTER);
    this.nsec.replace(nsec);
    this.nsec3.replace(nsec3);
    this.tails.fill(undefined);
    this.version++;
    this.#formerTransfers = this.#transfers;
    this.#transfers = 0;
  }

  /** Transfers of the previous state that are still in progress. */
  get formerTransfers(): number {
    return this.#formerTransfers;
  }

  /** Calls back once there are no more {@link formerTransfers}. */
  onLastLeft(callback: () => void): void {
    this.#onLastLeft = callback;
  }

  /** A transfer of the current state begins. */
  enter(): void {
    this.#transfers++;
  }

  /** A transfer of a version's state ends. */
  leave(version: number): void {
    if (version === this.version) this.#transfers--;
    else if (--this.#formerTransfers === 0) this.#onLastLeft?.();
  }

  /** Evaluates `look` on the version of a transfer that {@link enter} began. */
  asOf<T>(version: number, look: () => T): T {
    if (version === this.version) return look();
    this.see(Side.BEFORE);
    try {
      return look();
    } finally {
      this.see(Side.AFTER);
    }
  }

  /** Changes the zone while it is served, in one turn. */
  amend({ soa, removed, added }: ZoneChange): void {
    for (const { owner, type, rdata } of removed) this.remove(owner, owner.length, type, rdata, rdata.length);
    for (const record of added) this.addPlain(record);
    this.addPlain(soa);
    this.tails.fill(undefined);
    this.version++;
  }

  /** RDATA are uncompressed. A second SOA replaces the first. */
  add(
    owner: Uint8Array,
    ownerLength: number,
    type: number,
    ttl: number,
    rdata: Uint8Array,
    length: number,
  ): AddedResult {
    if (type === RecordType.SOA) {
      const node = this.records.nodeFor(owner, ownerLength, false);
      if (node !== APEX) return Added.OUT_OF_ZONE;
      if (this.hasSoa) this.records.removeRrset(APEX, this.soa);
    }
    return this.storeOf(type, rdata).add(owner, ownerLength, type, ttl, rdata, length);
  }

  addPlain({ owner, type, ttl, rdata }: PlainRecord): AddedResult {
    return this.add(owner, owner.length, type, ttl, rdata, rdata.length);
  }

  remove(owner: Uint8Array, ownerLength: number, type: number, rdata: Uint8Array, length: number): boolean {
    return this.storeOf(type, rdata).remove(owner, ownerLength, type, rdata, length);
  }

  /** Computes the order of denials, and frees unused memory; to be called after changes of many records. */
  async order(pause: () => Promise<void> = withoutRest): Promise<void> {
    await this.nsec.build(pause);
    await this.nsec3.build(pause);
    await this.records.trim(pause);
    await this.hashed.trim(pause);
  }

  /** Must be awaited between portions of added records, in place of a mere pause: otherwise growing could move much in one turn. */
  async makeRoom(pause: () => Promise<void>): Promise<void> {
    await this.records.makeRoom(pause);
    await this.hashed.makeRoom(pause);
    await pause();
  }

  /** The records that store a type. */
  storeOf(type: number, rdata: Uint8Array): ZoneRecords {
    if (type === RecordType.NSEC3) return this.hashed;
    if (type !== RecordType.RRSIG) return this.records;
    return (((rdata[0] ?? 0) << 8) | (rdata[1] ?? 0)) === RecordType.NSEC3 ? this.hashed : this.records;
  }
}
