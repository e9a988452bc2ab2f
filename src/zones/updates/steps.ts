/** What many steps of updates come to. */
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { SOA } from "../../dns/record-table.ts";
import { plainData } from "../../dns/resource-record.ts";
import { RecordType } from "../../dns/type-names.ts";
import { type PlainRecord, RecordLog } from "../data/record-log.ts";
import type { Zone } from "../data/zone.ts";
import type { ZoneChange } from "../data/zone-change.ts";
import { soaRecord } from "../data/zone-transfer.ts";
import { dataKey, type ZoneStep } from "./edited-zone.ts";

/** Steps of a portion: some tenths of a millisecond. */
const PORTION = 100;
/** Tables among which names are shared out: one that is full is copied in one turn. A power of two. */
const TABLES = 64;

/** The first step of a record, and the last. */
interface Ends {
  readonly first: "+" | "-";
  readonly last: ZoneStep;
}

/**
 * Steps that lead to the same zone, without what came and went again, or went and came back. The steps of each name keep their order.
 * @param pause called between portions
 */
export async function withoutDetours(
  steps: readonly ZoneStep[],
  pause: () => Promise<void>,
): Promise<ZoneStep[]> {
  const tables = Array.from({ length: Math.min(TABLES, steps.length) }, () => new Map<string, Ends>());
  let soa: ZoneStep | undefined;
  let count = 0;
  for (const step of steps) {
    if (++count % PORTION === 0) await pause();
    const { sign, record } = step;
    if (record.type === RecordType.SOA) {
      if (sign === "+") soa = step;
      continue;
    }
    const key = `${record.name.toLowerCase()} ${record.type} ${record.ttl} ${dataKey(record)}`;
    const ends = tables[(record.name.hash >>> 0) % tables.length];
    if (ends === undefined) continue;
    const first = ends.get(key)?.first ?? sign;
    // The order is that of the last steps: a record goes before it comes with another TTL.
    ends.delete(key);
    ends.set(key, { first, last: step });
  }
  const left: ZoneStep[] = [];
  for (const ends of tables) {
    for (const { first, last } of ends.values()) {
      if (++count % (10 * PORTION) === 0) await pause();
      if (first === last.sign) left.push(last);
    }
  }
  if (soa !== undefined) left.push(soa);
  return left;
}

/**
 * What steps change in a zone, which is as it was before the first of them.
 * @param pause called between portions
 */
export async function changeOf(
  zone: Zone,
  steps: readonly ZoneStep[],
  pause: () => Promise<void>,
): Promise<ZoneChange> {
  const removed = new RecordLog();
  const added = new RecordLog();
  let soa = plainOf(soaRecord(zone));
  let count = 0;
  for (const { sign, record } of await withoutDetours(steps, pause)) {
    if (++count % PORTION === 0) await pause();
    if (SOA.is(record)) soa = plainOf(record);
    else (sign === "+" ? added : removed).addPlain(plainOf(record));
  }
  return { from: zone.serial, soa, removed, added };
}

function plainOf(record: ResourceRecord): PlainRecord {
  const { name, type, ttl } = record;
  return { owner: name.toLowerCase().wire, type, ttl, rdata: plainData(record) };
}
