/**
 * What somebody says of a zone otherwise than the zone that is served, found without a second zone beside it: records that are there are ticked off
 * as they come in, the others are kept as octets, and what is left over in the zone in the end is gone.
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
 * Of the records of a zone so many, one in three, may come and as many may go. Beyond that a second zone takes hardly more memory than the
 * difference, and leaves less unused behind.
 */
const LARGEST_SHARE = 3;
/** A difference that is no matter for any zone. */
const LEAST_MUCH = 1_000;
/** Octets of a log that take a while to be moved. */
const LARGE = 1024 * 1024;
/** Nodes of a portion: some tenths of a millisecond. */
const PORTION = 500;

type Pause = () => Promise<void>;

export class ZoneComparison {
  readonly #zone: Zone;
  readonly #version: number;
  readonly #marks: ReadonlyMap<ZoneRecords, RecordMarks>;
  readonly #added = new RecordLog();
  readonly #most: number;
  #soa: PlainRecord | undefined;

  /** @param zone what is served */
  constructor(zone: Zone) {
    this.#zone = zone;
    this.#version = zone.version;
    this.#marks = new Map([zone.records, zone.hashed].map((records) => [records, new RecordMarks(records)]));
    this.#most = Math.max(LEAST_MUCH, Math.floor(zone.recordCount / LARGEST_SHARE));
  }

  /** The SOA record that came last; one that is not at the apex does not count. */
  get soa(): PlainRecord | undefined {
    return this.#soa;
  }

  /** Whether so much is new that a second zone is better. */
  get isTooMuch(): boolean {
    return this.#added.count > this.#most;
  }

  /** Octets of what is new. */
  get size(): number {
    return this.#added.size;
  }

  /** @returns false for names that do not lie in the zone */
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

  /** To be awaited between portions of what comes in. */
  pause(pause: Pause): Promise<void> {
    return this.#added.size > LARGE ? this.#added.makeRoom(pause).then(pause) : pause();
  }

  /**
   * What leads from the zone to what was said. The comparison is of no use afterwards, unless that is too much.
   * @returns `undefined` where that is too much
   * @throws ZoneChangeError where the zone changed meanwhile
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
   * Puts all that was said into another zone. The comparison is of no use afterwards.
   * @throws ZoneChangeError where the zone changed meanwhile, or an RRset is too large
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
      throw new ZoneChangeError("the zone changed otherwise meanwhile");
  }
}
