/** What many steps of updates come to. */
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { SOA } from "../../dns/record-table.ts";
import { plainData } from "../../dns/resource-record.ts";
import { RecordType } from "../../dns/type-names.ts";
import { type PlainRecord, RecordLog } from "../record-log.ts";
import type { Zone } from "../zone.ts";
import type { ZoneChange } from "../zone-change.ts";
import { soaRecord } from "../zone-transfer.ts";
import { dataKey, type ZoneStep } from "./edited-zone.ts";

/** Steps that lead to the same zone, without what came and went again, or went and came back. */
export function withoutDetours(steps: readonly ZoneStep[]): ZoneStep[] {
  const ends = new Map<string, { readonly first: "+" | "-"; readonly last: ZoneStep }>();
  let soa: ZoneStep | undefined;
  for (const step of steps) {
    const { sign, record } = step;
    if (record.type === RecordType.SOA) {
      if (sign === "+") soa = step;
      continue;
    }
    const key = `${record.name.toLowerCase()} ${record.type} ${record.ttl} ${dataKey(record)}`;
    const first = ends.get(key)?.first ?? sign;
    // The order is that of the last steps: a record goes before it comes with another TTL.
    ends.delete(key);
    ends.set(key, { first, last: step });
  }
  const left = Array.from(ends.values()).filter(({ first, last }) => first === last.sign);
  return [...left.map(({ last }) => last), ...(soa === undefined ? [] : [soa])];
}

/** What steps change in a zone, which is as it was before the first of them. */
export function changeOf(zone: Zone, steps: readonly ZoneStep[]): ZoneChange {
  const removed = new RecordLog();
  const added = new RecordLog();
  let soa = plainOf(soaRecord(zone));
  for (const { sign, record } of withoutDetours(steps)) {
    if (SOA.is(record)) soa = plainOf(record);
    else (sign === "+" ? added : removed).addPlain(plainOf(record));
  }
  return { from: zone.serial, soa, removed, added };
}

function plainOf(record: ResourceRecord): PlainRecord {
  const { name, type, ttl } = record;
  return { owner: name.toLowerCase().wire, type, ttl, rdata: plainData(record) };
}
