/**
 * What a zone's file says otherwise than the zone that is served, found without a second zone beside it: records that are there are ticked off,
 * and what is left over on either side is the difference. Only for small differences of plain zones: for all others, and for whatever is to be
 * complained about, the file is read as a whole.
 */
import { RecordClass } from "../dns/numbers.ts";
import { copyOctets, readU16, readU32 } from "../dns/octets.ts";
import { RecordType } from "../dns/type-names.ts";
import type { ZoneTextRecord } from "../dns/zone-text/parser.ts";
import { readZoneText } from "../dns/zone-text/read.ts";
import { APEX, NO_NODE } from "./name-tree.ts";
import { foldedName } from "./rdata-names.ts";
import { type PlainRecord, RecordLog } from "./record-log.ts";
import { RecordMarks } from "./record-marks.ts";
import type { Zone } from "./zone.ts";
import type { ZoneChange } from "./zone-change.ts";
import { type ReadZoneFileOptions, SameSerial } from "./zone-file.ts";
import type { ZoneRecords } from "./zone-records.ts";

/** As many records as are changed in some two milliseconds. */
const MOST_RECORDS = 1_000;
/** Nodes of a portion: some tenths of a millisecond. */
const PORTION = 500;
/** Octets of an RRset that may grow here: not nearly as many as fit. */
const MOST_RRSET_OCTETS = 32_768;

/** The file is to be read as a whole. */
class NotSmall extends Error {
  override readonly name = "NotSmall";
}

/**
 * @param zone what is served; must not change meanwhile
 * @returns `undefined` where the file has to be read as a whole
 * @throws SameSerial, or the error of the file system for the file itself
 */
export async function readFileDifference(
  zone: Zone,
  options: ReadZoneFileOptions & { readonly pause: () => Promise<void> },
): Promise<ZoneChange | undefined> {
  const { file, files, origin, pause } = options;
  const sink = new DifferenceSink(zone, options.knownSerial);
  try {
    const faults = await readZoneText({ file, files, origin, sink, pause });
    if (faults.list.length > 0 || faults.errors > 0) return undefined;
    return await sink.finish(pause);
  } catch (error) {
    if (error instanceof NotSmall) return undefined;
    throw error;
  }
}

class DifferenceSink {
  readonly #zone: Zone;
  readonly #knownSerial: number | undefined;
  readonly #marks: RecordMarks;
  readonly #added = new Map<string, PlainRecord>();
  /** Of the RRsets that records are added to. */
  readonly #ttls = new Map<string, number>();
  #soa: PlainRecord | undefined;

  constructor(zone: Zone, knownSerial: number | undefined) {
    this.#zone = zone;
    this.#knownSerial = knownSerial;
    this.#marks = new RecordMarks(zone.records);
  }

  record(record: ZoneTextRecord): undefined {
    const { owner, ownerLength, type, ttl, rdata, rdataLength } = record;
    const { records } = this.#zone;
    if (record.class !== RecordClass.IN || !records.liesInZone(owner, 0, ownerLength)) throw new NotSmall();
    if (type === RecordType.SOA) return this.#authority(record);
    if (this.#marks.mark(owner, ownerLength, type, ttl, rdata, rdataLength)) return;
    this.#requireEasy(record);
    const added = plain(records, owner, ownerLength, type, ttl, rdata, rdataLength);
    const rrset = rrsetKeyOf(added);
    // Of several TTLs the smallest counts for all, which is not for here.
    if ((this.#ttls.get(rrset) ?? ttl) !== ttl) throw new NotSmall();
    this.#ttls.set(rrset, ttl);
    this.#added.set(keyOf(added), added);
    if (this.#added.size > MOST_RECORDS) throw new NotSmall();
  }

  async finish(pause: () => Promise<void>): Promise<ZoneChange> {
    const soa = this.#soa;
    if (soa === undefined) throw new NotSmall();
    const { records } = this.#zone;
    const removed = new RecordLog();
    for (let node = APEX; node < records.names.limit; node++) {
      if (node % PORTION === PORTION - 1) await pause();
      for (let rrset = records.first(node); rrset >= 0; rrset = records.next(rrset)) {
        if (records.type(rrset) === RecordType.SOA || this.#marks.isComplete(rrset)) continue;
        for (const record of this.#unmarked(node, rrset)) removed.addPlain(record);
        if (removed.count > MOST_RECORDS) throw new NotSmall();
      }
    }
    const added = new RecordLog();
    for (const record of this.#added.values()) added.addPlain(record);
    return { from: this.#zone.serial, soa, removed, added };
  }

  #authority({ owner, ownerLength, ttl, rdata, rdataLength }: ZoneTextRecord): undefined {
    const { records } = this.#zone;
    if (this.#soa !== undefined || ownerLength !== records.apex.wire.length) throw new NotSmall();
    this.#soa = plain(records, owner, ownerLength, RecordType.SOA, ttl, rdata, rdataLength);
    const numbers = rdataLength - 20;
    if (readU32(rdata, numbers) === this.#knownSerial) throw new SameSerial();
  }

  /** Aliases beside other data, other TTLs, signatures, and RRsets that may grow too large are for who reads the whole. */
  #requireEasy({ owner, ownerLength, type, ttl, rdataLength }: ZoneTextRecord): void {
    const { records } = this.#zone;
    const isSigning = type === RecordType.RRSIG || type === RecordType.NSEC || type === RecordType.NSEC3;
    if (isSigning || type === RecordType.CNAME || rdataLength > MOST_RRSET_OCTETS / 2) throw new NotSmall();
    const node = records.nodeFor(owner, ownerLength, false);
    if (node === NO_NODE) return;
    if (records.rrset(node, RecordType.CNAME) >= 0) throw new NotSmall();
    const rrset = records.rrset(node, type);
    if (rrset >= 0 && (records.ttl(rrset) !== ttl || records.dataSize(rrset) > MOST_RRSET_OCTETS))
      throw new NotSmall();
  }

  *#unmarked(node: number, rrset: number): Generator<PlainRecord> {
    const { records } = this.#zone;
    const { wire: owner } = records.nodeName(node);
    const { bytes } = records.heap;
    let at = records.data(rrset);
    for (let index = 0; index < records.count(rrset); index++) {
      const length = readU16(bytes, at);
      if (!this.#marks.has(rrset, index)) {
        const rdata = copyOctets(bytes, at + 2, at + 2 + length);
        yield { owner, type: records.type(rrset), ttl: records.ttl(rrset), rdata };
      }
      at += 2 + length;
    }
  }
}

function plain(
  records: ZoneRecords,
  owner: Uint8Array,
  ownerLength: number,
  type: number,
  ttl: number,
  rdata: Uint8Array,
  length: number,
): PlainRecord {
  return {
    owner: foldedName(owner, ownerLength),
    type,
    ttl,
    rdata: records.foldedData(type, rdata, length),
  };
}

function rrsetKeyOf({ owner, type }: PlainRecord): string {
  return `${Buffer.from(owner).toString("latin1")} ${type}`;
}

function keyOf(record: PlainRecord): string {
  return `${rrsetKeyOf(record)} ${Buffer.from(record.rdata).toString("latin1")}`;
}
