/** A zone as it is served: its records, and what proves that names do not exist. */
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

/** The share of the octets that nothing refers to any more. */
const MOST_GARBAGE = 4;
/** Nodes of a portion: some tenths of a millisecond. */
const PORTION = 200;

export class Zone {
  readonly records: ZoneRecords;
  /** NSEC3 records and their signatures: their owners are hashes and no names of the zone (RFC 5155 section 7.2.8). */
  readonly hashed: ZoneRecords;
  /** Nodes with NSEC, in canonical order. */
  readonly nsec: NodeOrder;
  /** Nodes of {@link hashed}, in the order of their hashes. */
  readonly nsec3: NodeOrder;
  /** Ends of answers that were written already, for whoever answers. They are those of the zone as it is served: it does not change then. */
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

  /** The same zone in memory of its own, with room for more, to be put into {@link order} once it was changed. In portions. What nothing refers to any more is left out where that is much. */
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

  /** Makes room for what will much resemble another zone. */
  reserveAs({ records, hashed }: Zone): void {
    this.records.reserveAs(records);
    this.hashed.reserveAs(hashed);
  }

  get apex(): Name {
    return this.records.apex;
  }

  /** The SOA's RRset; NO_RRSET while there is none. */
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

  /** Seconds for which a denial holds (RFC 2308 section 5). */
  get negativeTtl(): number {
    return Math.min(this.records.ttl(this.soa), this.soaNumber(4));
  }

  get recordCount(): number {
    return this.records.recordCount + this.hashed.recordCount;
  }

  /** Octets of memory that are in use. */
  get used(): number {
    return this.records.used + this.hashed.used + this.nsec.size + this.nsec3.size;
  }

  /** Octets of memory. */
  get size(): number {
    return this.records.size + this.hashed.size + this.nsec.size + this.nsec3.size;
  }

  /** Those that read the zone for a while and need it to stay as it is: it may not even be changed as {@link begin} says. */
  readers = 0;
  /** Transfers that go out, of the present state and of the one before. */
  #transfers = 0;
  #formerTransfers = 0;
  #onLastLeft: (() => void) | undefined;
  /** Whoever serves it. */
  holders = 0;
  /** How often the zone was changed while it was served. */
  version = 0;

  /** Gives the memory back at once where nobody serves or copies the zone any more: V8 by itself takes its time. */
  async release(pause: () => Promise<void>): Promise<void> {
    if (this.holders > 0 || this.readers > 0 || this.#transfers > 0 || this.isChanging) return;
    // A copy that was promised is not begun.
    this.version++;
    this.tails.fill(undefined);
    await this.records.release(pause);
    await this.hashed.release(pause);
  }

  /** Whether {@link amend} may be called: what proves denials depends on all names, and much waste is better left behind. */
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

  /** Whether a change is being prepared, or what it leaves behind is not put away yet. */
  get isChanging(): boolean {
    return this.records.names.pending !== undefined || this.hashed.names.pending !== undefined;
  }

  /** Begins a change of any size; see `zone-transition.ts`. */
  begin(): void {
    this.records.begin();
    this.hashed.begin();
  }

  /** Which state is seen, and changed: that before the change or that after it. To be set back in the same turn. */
  see(side: SideNumber): void {
    for (const { names } of [this.records, this.hashed])
      if (names.pending !== undefined) names.pending.side = side;
  }

  /** From this turn on the state after the change is the zone. */
  switchOver(nsec: Int32Array | undefined, nsec3: Int32Array | undefined): void {
    this.see(Side.AFTER);
    this.nsec.replace(nsec);
    this.nsec3.replace(nsec3);
    this.tails.fill(undefined);
    this.version++;
    this.#formerTransfers = this.#transfers;
    this.#transfers = 0;
  }

  /** Transfers of the state before that are still under way. */
  get formerTransfers(): number {
    return this.#formerTransfers;
  }

  /** Calls back once there are no more {@link formerTransfers}. */
  onLastLeft(callback: () => void): void {
    this.#onLastLeft = callback;
  }

  /** A transfer of the present state begins. */
  enter(): void {
    this.#transfers++;
  }

  /** A transfer of the state of a version ends. */
  leave(version: number): void {
    if (version === this.version) this.#transfers--;
    else if (--this.#formerTransfers === 0) this.#onLastLeft?.();
  }

  /** Looks at the zone as it was in the version of a transfer that {@link enter} began. */
  asOf<T>(version: number, look: () => T): T {
    if (version === this.version) return look();
    this.see(Side.BEFORE);
    try {
      return look();
    } finally {
      this.see(Side.AFTER);
    }
  }

  /** Changes the zone while it is served, in one go. */
  amend({ soa, removed, added }: ZoneChange): void {
    for (const { owner, type, rdata } of removed) this.remove(owner, owner.length, type, rdata, rdata.length);
    for (const record of added) this.addPlain(record);
    this.addPlain(soa);
    this.tails.fill(undefined);
    this.version++;
  }

  /** RDATA are uncompressed. A second SOA takes the place of the first. */
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

  /** Puts what denials need into order, and gives back spare memory; to be called after changes of many records. */
  async order(pause: () => Promise<void> = withoutRest): Promise<void> {
    await this.nsec.build(pause);
    await this.nsec3.build(pause);
    await this.records.trim(pause);
    await this.hashed.trim(pause);
  }

  /** To be awaited between portions of what is added, in place of the pause alone: growing would move much in one turn otherwise. */
  async makeRoom(pause: () => Promise<void>): Promise<void> {
    await this.records.makeRoom(pause);
    await this.hashed.makeRoom(pause);
    await pause();
  }

  /** Where records of a type are kept. */
  storeOf(type: number, rdata: Uint8Array): ZoneRecords {
    if (type === RecordType.NSEC3) return this.hashed;
    if (type !== RecordType.RRSIG) return this.records;
    return (((rdata[0] ?? 0) << 8) | (rdata[1] ?? 0)) === RecordType.NSEC3 ? this.hashed : this.records;
  }
}
