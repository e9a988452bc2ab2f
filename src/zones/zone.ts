/** A zone as it is served: its records, and what proves that names do not exist. */
import type { Name } from "../dns/name.ts";
import { readU16, readU32 } from "../dns/octets.ts";
import { RecordType } from "../dns/type-names.ts";
import { withoutRest } from "../lib/turn-share.ts";
import type { AnswerTail } from "./answer-tail.ts";
import { APEX } from "./name-tree.ts";
import { NodeOrder } from "./node-order.ts";
import { nameLength } from "./rdata-names.ts";
import type { PlainRecord } from "./record-log.ts";
import type { ZoneChange } from "./zone-change.ts";
import { Added, type AddedResult, NO_RRSET, ZoneRecords } from "./zone-records.ts";

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
      if (this.#isTidy)
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
    const owner = new Uint8Array(256);
    for (let node = APEX; node < records.names.limit; node++) {
      if (node % PORTION === PORTION - 1) await this.makeRoom(pause);
      if (records.first(node) < 0) continue;
      owner.set(this.apex.wire, records.names.writeLabels(node, owner, 0));
      const length = nameLength(owner, 0);
      for (let rrset = records.first(node); rrset >= 0; rrset = records.next(rrset)) {
        const { bytes } = records.heap;
        let at = records.data(rrset);
        for (let left = records.count(rrset); left > 0; left--) {
          const size = readU16(bytes, at);
          const rdata = bytes.subarray(at + 2, at + 2 + size);
          this.add(owner, length, records.type(rrset), records.ttl(rrset), rdata, size);
          at += 2 + size;
        }
      }
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

  /** Octets of memory. */
  get size(): number {
    return this.records.size + this.hashed.size + this.nsec.size + this.nsec3.size;
  }

  /** Copies that go out: the zone must stay as it is. */
  readers = 0;
  /** Whoever serves it. */
  holders = 0;
  /** How often the zone was changed while it was served. */
  version = 0;

  /** Gives the memory back at once where nobody serves or copies the zone any more: V8 by itself takes its time. */
  async release(pause: () => Promise<void>): Promise<void> {
    if (this.holders > 0 || this.readers > 0) return;
    // A copy that was promised is not begun.
    this.version++;
    this.tails.fill(undefined);
    await this.records.release(pause);
    await this.hashed.release(pause);
  }

  /** Whether it may be changed while it is served: what proves denials depends on all names, and much waste is better left behind. */
  get isAmendable(): boolean {
    return this.nsec.count === 0 && this.hashed.recordCount === 0 && this.readers === 0 && this.#isTidy;
  }

  get #isTidy(): boolean {
    const { used, garbage } = this.records.heap;
    return garbage * MOST_GARBAGE <= used + 64 * 1024;
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
    return this.#store(type, rdata).add(owner, ownerLength, type, ttl, rdata, length);
  }

  addPlain({ owner, type, ttl, rdata }: PlainRecord): AddedResult {
    return this.add(owner, owner.length, type, ttl, rdata, rdata.length);
  }

  remove(owner: Uint8Array, ownerLength: number, type: number, rdata: Uint8Array, length: number): boolean {
    return this.#store(type, rdata).remove(owner, ownerLength, type, rdata, length);
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

  #store(type: number, rdata: Uint8Array): ZoneRecords {
    if (type === RecordType.NSEC3) return this.hashed;
    if (type !== RecordType.RRSIG) return this.records;
    return (((rdata[0] ?? 0) << 8) | (rdata[1] ?? 0)) === RecordType.NSEC3 ? this.hashed : this.records;
  }
}
