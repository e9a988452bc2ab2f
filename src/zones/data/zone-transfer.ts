/** A zone as records, for a transfer of the whole zone. */
import type { Name } from "../../dns/name.ts";
import { RecordClass } from "../../dns/numbers.ts";
import { copyOctets, readU16 } from "../../dns/octets.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { SOA } from "../../dns/record-table.ts";
import { dataFromWire } from "../../dns/resource-record.ts";
import { RecordType } from "../../dns/type-names.ts";
import type { StartOfAuthority, ZoneTransfer } from "../../plugin/contract/transfer.ts";
import { APEX } from "./name-tree.ts";
import type { Zone } from "./zone.ts";
import type { ZoneRecords } from "./zone-records.ts";

/** All records are from one state: a change during the iteration keeps the old data until they are read. */
export function copyOfZone(zone: Zone): ZoneTransfer {
  const { version } = zone;
  return { soa: soaRecord(zone), records: () => recordsInPeace(zone, version) };
}

/** @throws Error if the zone was changed before the first record was requested */
function* recordsInPeace(zone: Zone, version: number): Generator<ResourceRecord> {
  if (zone.version !== version) throw new Error(`zone ${zone.apex} has changed: ask again`);
  zone.enter();
  const records = recordsOf(zone);
  const next = (): IteratorResult<ResourceRecord> => records.next();
  try {
    for (let step = next(); step.done !== true; step = zone.asOf(version, next)) yield step.value;
  } finally {
    zone.leave(version);
  }
}

export function soaRecord(zone: Zone): StartOfAuthority {
  const [soa] = rrsetRecords(zone.records, zone.apex, zone.soa);
  if (soa === undefined || !SOA.is(soa)) throw new RangeError(`zone ${zone.apex} has no SOA record`);
  return soa;
}

function* recordsOf(zone: Zone): Generator<ResourceRecord> {
  const { records, hashed } = zone;
  for (const type of [RecordType.SOA, RecordType.NS]) {
    for (const rrset of [records.rrset(APEX, type), records.signatures(APEX, type)]) {
      if (rrset >= 0 && records.type(rrset) !== RecordType.SOA)
        yield* rrsetRecords(records, zone.apex, rrset);
    }
  }
  yield* nodesOf(records, isApexHead);
  yield* nodesOf(hashed, () => false);
}

function isApexHead(records: ZoneRecords, node: number, rrset: number): boolean {
  if (node !== APEX) return false;
  const type = records.type(rrset);
  const subject = type === RecordType.RRSIG ? records.covered(rrset) : type;
  return subject === RecordType.SOA || subject === RecordType.NS;
}

function* nodesOf(
  records: ZoneRecords,
  isDone: (records: ZoneRecords, node: number, rrset: number) => boolean,
): Generator<ResourceRecord> {
  for (let node = APEX; node < records.names.limit; node++) {
    let name: Name | undefined;
    for (let rrset = records.first(node); rrset >= 0; rrset = records.next(rrset)) {
      if (isDone(records, node, rrset)) continue;
      name ??= records.nodeName(node);
      yield* rrsetRecords(records, name, rrset);
    }
  }
}

/** The records of an RRset as values. */
export function* rrsetRecords(records: ZoneRecords, name: Name, rrset: number): Generator<ResourceRecord> {
  const type = records.type(rrset);
  let at = records.data(rrset);
  for (let left = records.count(rrset); left > 0; left--) {
    // The heap may have been moved since the previous record.
    const { bytes } = records.heap;
    const length = readU16(bytes, at);
    const data = dataFromWire(type, copyOctets(bytes, at + 2, at + 2 + length));
    yield { name, type, class: RecordClass.IN, ttl: records.ttl(rrset), data };
    at += 2 + length;
  }
}
