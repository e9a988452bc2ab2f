/** Applies changes of a zone that were computed elsewhere, after checking that they fit. */
import { Name } from "../../dns/name.ts";
import { readU16 } from "../../dns/octets.ts";
import { RecordType, recordTypeName } from "../../dns/type-names.ts";
import { APEX, NO_NODE } from "../data/name-tree.ts";
import { foldedData } from "../data/rdata-names.ts";
import type { PlainRecord } from "../data/record-log.ts";
import type { Zone } from "../data/zone.ts";
import type { ZoneChange } from "../data/zone-change.ts";
import { Added } from "../data/zone-records.ts";

/** Small enough to be changed in one turn of the event loop. */
const MOST_RECORDS = 1_000;
const MOST_OCTETS = 32 * 1024;
/** Bytes of an RRset that may grow in place by as much: far below the maximum of an RRset. */
const MOST_RRSET_OCTETS = 30 * 1024;
/** Records between two pauses. */
const PORTION = 100;

/** A change removes a missing record, or adds one that does not fit. */
export class ZoneChangeError extends Error {
  override readonly name = "ZoneChangeError";
}

/** Whether the change may be made in the served zone, in one turn. */
export function mayBeAmendedBy(zone: Zone, { removed, added }: ZoneChange): boolean {
  const octets = added.used;
  if (!zone.isAmendable || removed.count + added.count > MOST_RECORDS) return false;
  if (removed.used > MOST_OCTETS || octets > MOST_OCTETS) return false;
  // An RRset that grows moves to a place with twice its size.
  let moved = 2 * octets;
  const { records } = zone;
  for (const { owner, type } of added) {
    if (type === RecordType.RRSIG || type === RecordType.NSEC || type === RecordType.NSEC3) return false;
    const node = records.nodeFor(owner, owner.length, false);
    const rrset = node === NO_NODE ? -1 : records.rrset(node, type);
    if (rrset < 0) continue;
    const size = records.dataSize(rrset);
    if (size > MOST_RRSET_OCTETS) return false;
    moved += 2 * size;
  }
  return records.hasRoomFor(added.count, moved);
}

/** @throws ZoneChangeError for a change of another state */
export function requireSerial(zone: Zone, { from }: ZoneChange): void {
  if (zone.serial !== from)
    throw new ZoneChangeError(`the change is based on serial ${from}, and the zone has ${zone.serial}`);
}

/** @returns the error, if a change removes a record that the zone does not have */
export function isMissingFrom(zone: Zone, { removed }: ZoneChange): ZoneChangeError | undefined {
  for (const record of removed) {
    const { owner, type, rdata } = record;
    if (zone.records.locate(owner, owner.length, type, rdata, rdata.length) < 0) return missing(record);
  }
  return undefined;
}

/**
 * Applies a change to a zone that is not served, in portions.
 * @throws ZoneChangeError
 */
export async function applyChange(
  zone: Zone,
  { soa, removed, added }: ZoneChange,
  pause: () => Promise<void>,
): Promise<void> {
  let count = 0;
  for (const record of removed) {
    if (++count % PORTION === 0) await pause();
    removeRecord(zone, record);
  }
  for (const record of added) {
    if (++count % PORTION === 0) await zone.makeRoom(pause);
    addRecord(zone, record);
  }
  zone.addPlain(soa);
}

/** @throws ZoneChangeError if there is no such record */
export function removeRecord(zone: Zone, record: PlainRecord): void {
  const { owner, type, rdata } = record;
  if (!zone.remove(owner, owner.length, type, rdata, rdata.length)) throw missing(record);
}

/** @throws ZoneChangeError if an RRset becomes too large */
export function addRecord(zone: Zone, record: PlainRecord): void {
  if (zone.addPlain(record) === Added.TOO_LARGE)
    throw new ZoneChangeError(
      `${nameOf(record)} has more ${recordTypeName(record.type)} records than fit into a message`,
    );
}

/** NS records of the apex after some changes. */
export function nameServersAfter(zone: Zone, changes: readonly ZoneChange[]): number {
  const { records } = zone;
  const rrset = records.rrset(APEX, RecordType.NS);
  const left = new Set<string>();
  const keyOf = (rdata: Uint8Array): string =>
    Buffer.from(foldedData(RecordType.NS, rdata)).toString("latin1");
  const isApexNs = ({ owner, type }: PlainRecord): boolean =>
    type === RecordType.NS && owner.length === zone.apex.wire.length;
  if (rrset >= 0) {
    const { bytes } = records.heap;
    let at = records.data(rrset);
    for (let count = records.count(rrset); count > 0; count--) {
      const length = readU16(bytes, at);
      left.add(keyOf(bytes.subarray(at + 2, at + 2 + length)));
      at += 2 + length;
    }
  }
  for (const { removed, added } of changes) {
    for (const record of removed) if (isApexNs(record)) left.delete(keyOf(record.rdata));
    for (const record of added) if (isApexNs(record)) left.add(keyOf(record.rdata));
  }
  return left.size;
}

function missing(record: PlainRecord): ZoneChangeError {
  return new ZoneChangeError(
    `a change removes a missing record: ${nameOf(record)} ${recordTypeName(record.type)}`,
  );
}

function nameOf({ owner }: PlainRecord): Name {
  return Name.fromCheckedWire(owner.slice());
}
