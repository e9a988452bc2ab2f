/** Dynamic updates (RFC 2136): prerequisites, checks, and their effect on a zone. */

import type { Message } from "../../dns/message.ts";
import type { Name } from "../../dns/name.ts";
import { Rcode, RecordClass } from "../../dns/numbers.ts";
import { isOpaque, type ResourceRecord } from "../../dns/record-kind.ts";
import { SOA } from "../../dns/record-table.ts";
import { RecordType } from "../../dns/type-names.ts";
import { isAsNew } from "../../plugin/contract/transfer.ts";
import type { EditedZone } from "./edited-zone.ts";

/** Types that no zone has records of (RFC 2136 section 3.4.1). */
const FIRST_META_TYPE = 249;
const LAST_META_TYPE = 255;

function isMetaType(type: number): boolean {
  return type === RecordType.OPT || (type >= FIRST_META_TYPE && type <= LAST_META_TYPE);
}

/** Types made only by signing: in answers of an unsigned zone, a few of them would deny existing names. */
const SIGNERS_TYPES: ReadonlySet<number> = new Set([
  RecordType.RRSIG,
  RecordType.NSEC,
  RecordType.NSEC3,
  RecordType.NSEC3PARAM,
]);

const NO_TYPES: ReadonlySet<number> = new Set();

function hasData({ data }: ResourceRecord): boolean {
  return !isOpaque(data) || data.octets.length > 0;
}

/**
 * Checks the prerequisites of an update (section 3.2).
 * @param unsupported types that get NOTIMP
 * @returns NOERROR, or the rcode of the first that fails
 */
export function checkPrerequisites(
  { answer }: Message,
  zone: EditedZone,
  unsupported: ReadonlySet<number> = NO_TYPES,
): number {
  const wanted: ResourceRecord[] = [];
  for (const record of answer) {
    const { name, type } = record;
    if (record.ttl !== 0) return Rcode.FORMERR;
    if (!name.isAtOrBelow(zone.apex)) return Rcode.NOTZONE;
    if (unsupported.has(type)) return Rcode.NOTIMP;
    if (isMetaType(type) && (type !== RecordType.ANY || record.class === RecordClass.IN))
      return Rcode.FORMERR;
    if (record.class === RecordClass.IN) {
      wanted.push(record);
      continue;
    }
    if (hasData(record) || (record.class !== RecordClass.ANY && record.class !== RecordClass.NONE))
      return Rcode.FORMERR;
    const exists = type === RecordType.ANY ? zone.hasName(name) : zone.hasRrset(name, type);
    if (record.class === RecordClass.ANY && !exists)
      return type === RecordType.ANY ? Rcode.NXDOMAIN : Rcode.NXRRSET;
    if (record.class === RecordClass.NONE && exists)
      return type === RecordType.ANY ? Rcode.YXDOMAIN : Rcode.YXRRSET;
  }
  return zone.holdsExactly(wanted) ? Rcode.NOERROR : Rcode.NXRRSET;
}

/**
 * Checks whether an update can be applied (section 3.4.1). REFUSED for records made only by signing, and for a DNAME at the apex.
 * @param unsupported types that get NOTIMP
 */
export function checkUpdate(
  { authority }: Message,
  apex: Name,
  unsupported: ReadonlySet<number> = NO_TYPES,
): number {
  for (const record of authority) {
    if (!record.name.isAtOrBelow(apex)) return Rcode.NOTZONE;
    if (!isWellFormed(record)) return Rcode.FORMERR;
    if (unsupported.has(record.type)) return Rcode.NOTIMP;
    if (record.class !== RecordClass.ANY && !hasData(record)) return Rcode.FORMERR;
    if (record.class === RecordClass.IN) {
      const isApex = record.name.equals(apex);
      // RFC 2136 section 4.2 advises against this serial.
      if (SOA.is(record) && (!isApex || record.data.serial === 0)) return Rcode.FORMERR;
      if (SIGNERS_TYPES.has(record.type)) return Rcode.REFUSED;
      // It would hide all names of the zone, including its name servers.
      if (record.type === RecordType.DNAME && isApex) return Rcode.REFUSED;
    }
  }
  return Rcode.NOERROR;
}

function isWellFormed(record: ResourceRecord): boolean {
  const { ttl, type } = record;
  if (record.class === RecordClass.IN) return !isMetaType(type);
  if (record.class === RecordClass.NONE) return ttl === 0 && !isMetaType(type);
  if (record.class !== RecordClass.ANY) return false;
  return ttl === 0 && !hasData(record) && (type === RecordType.ANY || !isMetaType(type));
}

/** Records between two pauses. */
const PORTION = 100;

/**
 * Applies an update (section 3.4.2). It must have passed {@link checkUpdate}.
 * @param pause called between portions
 */
export async function applyUpdate(
  { authority }: Message,
  zone: EditedZone,
  pause: () => Promise<void>,
): Promise<void> {
  for (const [index, record] of authority.entries()) {
    if (index % PORTION === PORTION - 1) await pause();
    if (record.class === RecordClass.IN) add(record, zone);
    else if (record.class === RecordClass.ANY) removeRrsets(record, zone);
    else remove(record, zone);
  }
}

function add(record: ResourceRecord, zone: EditedZone): void {
  const { name, type } = record;
  if (SOA.is(record)) {
    const { serial } = record.data;
    // Older serials are ignored, and so is one at the maximum distance (RFC 1982).
    if (serial !== zone.serial && isAsNew(serial, zone.serial)) zone.replaceRrset(record);
    return;
  }
  if (type === RecordType.CNAME) {
    if (zone.hasOtherData(name)) return;
    zone.replaceRrset(record);
  } else if (!zone.hasRrset(name, RecordType.CNAME)) {
    // A name has one DNAME record (RFC 6672 section 5.2).
    if (type === RecordType.DNAME) zone.replaceRrset(record);
    else zone.add(record);
  }
}

function removeRrsets({ name, type }: ResourceRecord, zone: EditedZone): void {
  const isApex = name.equals(zone.apex);
  for (const own of type === RecordType.ANY ? zone.typesAt(name) : [type]) {
    if (isApex && (own === RecordType.SOA || own === RecordType.NS)) continue;
    zone.removeRrset(name, own);
  }
}

function remove(record: ResourceRecord, zone: EditedZone): void {
  if (record.type === RecordType.SOA) return;
  const isLastServer =
    record.type === RecordType.NS &&
    record.name.equals(zone.apex) &&
    zone.countOf(record.name, RecordType.NS) === 1;
  if (!isLastServer) zone.remove(record);
}
