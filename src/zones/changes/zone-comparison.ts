/**
 * Computes the difference between a served zone and incoming records without building a second zone. Existing records are ticked
 * off as they arrive, new ones are kept, and records of the zone that remain at the end are gone.
 */
import { RecordType } from "../../dns/type-names.ts";
import { eachRecord } from "../data/each-record.ts";
import { APEX } from "../data/name-tree.ts";
import { foldedName } from "../data/rdata-names.ts";
import { type PlainRecord, RecordLog } from "../data/record-log.ts";
import { RecordMarks } from "../data/record-marks.ts";
import type { Zone } from "../data/zone.ts";
import type { ZoneChange } from "../data/zone-change.ts";
import type { ZoneRecords } from "../data/zone-records.ts";
import { addRecord, ZoneChangeError } from "./zone-changes.ts";

/**
 * One in so many records may be added, and as many removed. Beyond that, a second zone takes hardly more memory than the
 * difference, and wastes less afterwards.
 */
const LARGEST_SHARE = 3;
/** A difference that is small for any zone. */
const LEAST_MUCH = 1_000;
/** Bytes of a log that take long to move. */
const LARGE = 1024 * 1024;
/** Nodes between two pauses. */
const PORTION = 500;

type Pause = () => Promise<void>;

export class ZoneComparison {
  readonly #zone: Zone;
  readonly #version: number;
  readonly #marks: ReadonlyMap<ZoneRecords, RecordMarks>;
  readonly #added = new RecordLog();
  readonly #most: number;
  #soa: PlainRecord | undefined;

  /** @param zone the served zone */
  constructor(zone: Zone) {
    this.#zone = zone;
    this.#version = zone.version;
    this.#marks = new Map([zone.records, zone.hashed].map((records) => [records, new RecordMarks(records)]));
    this.#most = Math.max(LEAST_MUCH, Math.floor(zone.recordCount / LARGEST_SHARE));
  }

  /** The last SOA record at the apex. */
  get soa(): PlainRecord | undefined {
    return this.#soa;
  }

  /** Whether so much is new that a second zone is better. */
  get isTooMuch(): boolean {
    return this.#added.count > this.#most;
  }

  /** Bytes of the new records. */
  get size(): number {
    return this.#added.size;
  }

  /** @returns false for names outside of the zone */
  take(
    owner: Uint8Array,
    ownerLength: number,
    type: number,
    ttl: number,
    rdata: Uint8Array,
    length: number,
  ): boolean {
    const records = this.#zone.storeOf(type, rdata);
    if (!records.liesInZone(owner, 0, ownerLength)) return false;
    const isSoa = type === RecordType.SOA;
    if (isSoa && ownerLength !== records.apex.wire.length) return false;
    if (!isSoa && this.#marks.get(records)?.mark(owner, ownerLength, type, ttl, rdata, length) === true)
      return true;
    const kept = { owner: foldedName(owner, ownerLength), type, ttl };
    const record = { ...kept, rdata: rdata.slice(0, length) };
    if (isSoa) this.#soa = record;
    else this.#added.addPlain(record);
    return true;
  }

  /** Must be awaited between portions of incoming records. */
  pause(pause: Pause): Promise<void> {
    return this.#added.size > LARGE ? this.#added.makeRoom(pause).then(pause) : pause();
  }

  /**
   * The change from the zone to the incoming records. Consumes the comparison, unless the change is too large.
   * @returns `undefined` if it is too large
   * @throws ZoneChangeError if the zone has changed since the start
   */
  async finish(pause: Pause): Promise<ZoneChange | undefined> {
    const soa = this.#soa;
    if (soa === undefined) return undefined;
    const removed = new RecordLog();
    for (const [records, marks] of this.#marks) {
      for (let node = APEX; node < records.names.limit; node++) {
        if (node % PORTION === PORTION - 1) {
          if (removed.size > LARGE) await removed.makeRoom(pause);
          await pause();
        }
        this.#requireUnchanged();
        if (removed.count > this.#most) return undefined;
        eachRecord(records, node, records.first(node), (record, rrset, index) => {
          if (record.type !== RecordType.SOA && !marks.has(rrset, index)) removed.addPlain(record);
        });
      }
    }
    this.#discardMarks();
    return { from: this.#zone.serial, soa, removed, added: this.#added };
  }

  /**
   * Adds all incoming records to another zone. Consumes the comparison.
   * @throws ZoneChangeError if the zone has changed since the start, or an RRset is too large
   */
  async moveTo(zone: Zone, pause: Pause): Promise<void> {
    let count = 0;
    for (const [records, marks] of this.#marks) {
      for (let node = APEX; node < records.names.limit; node++) {
        if (node % PORTION === PORTION - 1) await zone.makeRoom(pause);
        this.#requireUnchanged();
        eachRecord(records, node, records.first(node), (record, rrset, index) => {
          if (marks.has(rrset, index)) addRecord(zone, record);
        });
      }
    }
    for (const record of this.#added) {
      if (++count % PORTION === 0) await zone.makeRoom(pause);
      addRecord(zone, record);
    }
    if (this.#soa !== undefined) zone.addPlain(this.#soa);
    this.#added.discard();
    this.#discardMarks();
  }

  #discardMarks(): void {
    for (const marks of this.#marks.values()) marks.discard();
  }

  #requireUnchanged(): void {
    if (this.#zone.version !== this.#version)
      throw new ZoneChangeError("the zone was changed during the comparison");
  }
}
