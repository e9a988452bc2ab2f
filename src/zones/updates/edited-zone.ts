/** A copy of a zone that is being changed, and the list of steps: replaying them gives the same zone. */
import type { Name } from "../../dns/name.ts";
import { RecordClass } from "../../dns/numbers.ts";
import { FOLD, octetAt, readU16 } from "../../dns/octets.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { SOA } from "../../dns/record-table.ts";
import { canonicalData, dataFromWire, plainData } from "../../dns/resource-record.ts";
import { RecordType, recordTypeName } from "../../dns/type-names.ts";
import { NO_NODE } from "../data/name-tree.ts";
import { NO_RRSET } from "../data/rrset-table.ts";
import type { Zone } from "../data/zone.ts";
import { Added, type AddedResult } from "../data/zone-records.ts";
import { rrsetRecords, soaRecord } from "../data/zone-transfer.ts";

/** An added (`+`) or removed (`-`) record. */
export interface ZoneStep {
  readonly sign: "+" | "-";
  readonly record: ResourceRecord;
}

/** An RRset would be too large for a message. */
export class RecordTooLargeError extends Error {
  override readonly name = "RecordTooLargeError";

  constructor({ name, type }: ResourceRecord) {
    super(`${name} would have more ${recordTypeName(type)} records than fit into a message`);
  }
}

export class EditedZone {
  readonly zone: Zone;
  readonly steps: ZoneStep[] = [];

  /** @param zone owned by this object */
  constructor(zone: Zone) {
    this.zone = zone;
  }

  get apex(): Name {
    return this.zone.apex;
  }

  get serial(): number {
    return this.zone.serial;
  }

  hasName(name: Name): boolean {
    const node = this.#node(name);
    return node !== NO_NODE && this.zone.records.first(node) >= 0;
  }

  hasRrset(name: Name, type: number): boolean {
    return this.#rrset(name, type) !== NO_RRSET;
  }

  /** Whether there is any record besides a CNAME and the signatures and denials that may accompany it. */
  hasOtherData(name: Name): boolean {
    return this.typesAt(name).some(
      (type) => type !== RecordType.CNAME && type !== RecordType.RRSIG && type !== RecordType.NSEC,
    );
  }

  typesAt(name: Name): number[] {
    const { records } = this.zone;
    const node = this.#node(name);
    const types: number[] = [];
    if (node === NO_NODE) return types;
    for (let rrset = records.first(node); rrset >= 0; rrset = records.next(rrset))
      types.push(records.type(rrset));
    return types;
  }

  countOf(name: Name, type: number): number {
    const rrset = this.#rrset(name, type);
    return rrset === NO_RRSET ? 0 : this.zone.records.count(rrset);
  }

  recordsOf(name: Name, type: number): ResourceRecord[] {
    const rrset = this.#rrset(name, type);
    return rrset === NO_RRSET ? [] : [...rrsetRecords(this.zone.records, name, rrset)];
  }

  /** Whether the zone has each RRset of these records with exactly these records, whatever their TTL (RFC 2136 section 3.2.3). */
  holdsExactly(wanted: readonly ResourceRecord[]): boolean {
    const groups = Map.groupBy(wanted, ({ name, type }) => `${name.toLowerCase()} ${type}`);
    for (const group of groups.values()) {
      const [first] = group;
      if (first === undefined) continue;
      const here = new Set(this.recordsOf(first.name, first.type).map(dataKey));
      const there = new Set(group.map(dataKey));
      if (here.size !== there.size || [...there].some((key) => !here.has(key))) return false;
    }
    return true;
  }

  /** Adds a record; its TTL becomes that of the RRset (RFC 2181 section 5.2). */
  add(record: ResourceRecord): void {
    const { name, type, ttl } = record;
    const rrset = this.#rrset(name, type);
    const isThere = this.#find(record) !== undefined;
    if (rrset !== NO_RRSET && this.zone.records.ttl(rrset) !== ttl) {
      const present = this.recordsOf(name, type);
      this.removeRrset(name, type);
      for (const other of present) this.#put({ ...other, ttl });
    }
    if (!isThere) this.#put(record);
  }

  replaceRrset(record: ResourceRecord): void {
    const { name, type, ttl } = record;
    // An existing record changes nothing, not even the serial.
    if (this.countOf(name, type) === 1 && this.#find(record)?.ttl === ttl) return;
    this.removeRrset(record.name, record.type);
    this.#put(record);
  }

  removeRrset(name: Name, type: number): void {
    for (const record of this.recordsOf(name, type)) this.#take(record);
  }

  remove(record: ResourceRecord): void {
    const found = this.#find(record);
    if (found !== undefined) this.#take(found);
  }

  /** The record as the zone has it. An RRset may have thousands, so only candidates are decoded. */
  #find(record: ResourceRecord): ResourceRecord | undefined {
    const { name, type } = record;
    const rrset = this.#rrset(name, type);
    if (rrset === NO_RRSET) return undefined;
    const { records } = this.zone;
    const { bytes } = records.heap;
    const wanted = plainData(record);
    let at = records.data(rrset);
    for (let left = records.count(rrset); left > 0; left--) {
      const length = readU16(bytes, at);
      if (length === wanted.length && areAlike(bytes, at + 2, wanted)) {
        const data = dataFromWire(type, bytes.slice(at + 2, at + 2 + length));
        const found = { name, type, class: RecordClass.IN, ttl: records.ttl(rrset), data };
        if (dataKey(found) === dataKey(record)) return found;
      }
      at += 2 + length;
    }
    return undefined;
  }

  /** The next serial (RFC 1982), unless an update has set its own. */
  advanceSerial(former: number): void {
    if (this.serial === former) this.passSerials(1);
  }

  /** Skips serials, and sets the one after them. @returns the steps */
  passSerials(count: number): ZoneStep[] {
    const soa = soaRecord(this.zone);
    const serial = (soa.data.serial + count) >>> 0 || 1;
    const start = this.steps.length;
    this.replaceRrset(SOA.create(soa.name, soa.ttl, { ...soa.data, serial }));
    return this.steps.slice(start);
  }

  /** Applies one of the steps of another zone. */
  repeat({ sign, record }: ZoneStep): void {
    if (sign === "-") this.#take(record);
    else if (this.#add(record) !== Added.TOO_LARGE) this.steps.push({ sign, record });
  }

  /** Reverts all steps from a number on. */
  undo(from: number): void {
    for (const { sign, record } of this.steps.splice(from).toReversed()) {
      // The previous SOA record comes back and replaces it.
      if (record.type === RecordType.SOA && sign === "+") continue;
      if (sign === "+") this.#remove(record);
      else this.#add(record);
    }
  }

  #add(record: ResourceRecord): AddedResult {
    const data = plainData(record);
    const { wire } = record.name;
    return this.zone.add(wire, wire.length, record.type, record.ttl, data, data.length);
  }

  #remove(record: ResourceRecord): void {
    const data = plainData(record);
    const { wire } = record.name;
    this.zone.remove(wire, wire.length, record.type, data, data.length);
  }

  #put(record: ResourceRecord): void {
    if (this.#add(record) === Added.TOO_LARGE) throw new RecordTooLargeError(record);
    this.steps.push({ sign: "+", record: { ...record, class: RecordClass.IN } });
  }

  #take(record: ResourceRecord): void {
    // A zone always has an SOA record: the next one replaces it.
    if (record.type !== RecordType.SOA) this.#remove(record);
    this.steps.push({ sign: "-", record });
  }

  #node(name: Name): number {
    return this.zone.records.nodeFor(name.wire, name.wire.length, false);
  }

  #rrset(name: Name, type: number): number {
    const node = this.#node(name);
    return node === NO_NODE ? NO_RRSET : this.zone.records.rrset(node, type);
  }
}

/** Whether octets are equal apart from case, as equal RDATA are. */
function areAlike(bytes: Uint8Array, start: number, wanted: Uint8Array): boolean {
  for (let at = 0; at < wanted.length; at++) {
    if (octetAt(FOLD, octetAt(bytes, start + at)) !== octetAt(FOLD, octetAt(wanted, at))) return false;
  }
  return true;
}

/** The same for equal RDATA, and for no others. */
export function dataKey(record: ResourceRecord): string {
  return Buffer.from(canonicalData(record)).toString("latin1");
}
