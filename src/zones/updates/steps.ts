/** Simplifies the steps of updates. */
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { SOA } from "../../dns/record-table.ts";
import { plainData } from "../../dns/resource-record.ts";
import { RecordType } from "../../dns/type-names.ts";
import { type PlainRecord, RecordLog } from "../data/record-log.ts";
import type { Zone } from "../data/zone.ts";
import type { ZoneChange } from "../data/zone-change.ts";
import { soaRecord } from "../data/zone-transfer.ts";
import { dataKey, type ZoneStep } from "./edited-zone.ts";

/** Steps between two pauses. */
const PORTION = 100;
/** Tables that names are distributed among, because a full one is copied in one turn. A power of two. */
const TABLES = 64;

/** The first and the last step of a record. */
interface Ends {
  readonly first: "+" | "-";
  readonly last: ZoneStep;
}

/**
 * Steps with the same result, without records that were added and removed again, or the reverse. The steps of each name keep their
 * order.
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
    // The order is that of the last steps: a record is removed before it is added with another TTL.
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
 * The change made by steps to a zone in the state before them.
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
