/** The changes between states of a zone, for secondaries with an older one (IXFR, RFC 1995). */
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { RecordType } from "../../dns/type-names.ts";
import { isAsNew } from "../../plugin/contract/transfer.ts";
import { eachRecord } from "../data/each-record.ts";
import { APEX } from "../data/name-tree.ts";
import { Side } from "../data/pending-nodes.ts";
import { RecordLog } from "../data/record-log.ts";
import type { Zone } from "../data/zone.ts";
import type { ZoneRecords } from "../data/zone-records.ts";
import { soaRecord } from "../data/zone-transfer.ts";

export interface ZoneDifference {
  readonly before: ResourceRecord;
  readonly after: ResourceRecord;
  readonly fromSerial: number;
  readonly toSerial: number;
  /** Without the SOA records. */
  readonly removed: RecordLog;
  readonly added: RecordLog;
}

/** Nodes between two pauses. */
const PORTION = 200;
/** Bytes that take long to move. */
const LARGE = 1024 * 1024;

/**
 * The change from one state of a zone to the next.
 * @param limit bytes above which the difference is of no use
 * @returns `undefined` if it is larger, or the later state has no newer serial
 */
export async function differenceOf(
  before: Zone,
  after: Zone,
  limit: number,
  pause: () => Promise<void>,
): Promise<ZoneDifference | undefined> {
  const [fromSerial, toSerial] = [before.serial, after.serial];
  if (isAsNew(fromSerial, toSerial)) return undefined;
  const logs = await compareZones(before, after, limit, pause);
  return logs && { before: soaRecord(before), after: soaRecord(after), fromSerial, toSerial, ...logs };
}

/**
 * Compares two zones without their SOA records.
 * @param limit bytes of differing records
 * @returns `undefined` if more records differ
 */
export async function compareZones(
  before: Zone,
  after: Zone,
  limit: number,
  pause: () => Promise<void>,
): Promise<{ readonly removed: RecordLog; readonly added: RecordLog } | undefined> {
  const removed = new RecordLog();
  const added = new RecordLog();
  const isTooMuch = (): boolean => removed.size + added.size > limit;
  for (const [from, to, log] of [
    [before.records, after.records, removed],
    [before.hashed, after.hashed, removed],
    [after.records, before.records, added],
    [after.hashed, before.hashed, added],
  ] as const) {
    if (await logMissing(from, to, log, isTooMuch, pause)) continue;
    removed.discard();
    added.discard();
    return undefined;
  }
  return { removed, added };
}

/** Logs the records of `from` that `to` lacks. @returns false if the limit is exceeded */
async function logMissing(
  from: ZoneRecords,
  to: ZoneRecords,
  log: RecordLog,
  isTooMuch: () => boolean,
  pause: () => Promise<void>,
): Promise<boolean> {
  for (let node = APEX; node < from.names.limit; node++) {
    if (node % PORTION === PORTION - 1) {
      await pause();
      if (log.size > LARGE) await log.makeRoom(pause);
    }
    logList(from, node, from.first(node), to, log);
    if (isTooMuch()) return false;
  }
  return true;
}

/**
 * The pending change of a zone, without the SOA record.
 * @param limit bytes of differing records
 * @returns `undefined` if more records differ
 */
export async function pendingDifference(
  zone: Zone,
  limit: number,
  pause: () => Promise<void>,
): Promise<{ readonly removed: RecordLog; readonly added: RecordLog } | undefined> {
  const [removed, added] = [new RecordLog(), new RecordLog()];
  for (const records of [zone.records, zone.hashed]) {
    const { pending } = records.names;
    for (let place = 0; pending !== undefined && place < pending.count; place++) {
      if (place % PORTION === PORTION - 1) {
        await pause();
        for (const log of [removed, added]) if (log.size > LARGE) await log.makeRoom(pause);
      }
      const node = pending.node(place);
      logList(records, node, pending.after(place), records, added);
      zone.see(Side.AFTER);
      logList(records, node, pending.before(place), records, removed);
      zone.see(Side.BEFORE);
      if (removed.size + added.size <= limit) continue;
      removed.discard();
      added.discard();
      return undefined;
    }
  }
  return { removed, added };
}

/** Logs the records of a node's list that `to` lacks. */
function logList(from: ZoneRecords, node: number, first: number, to: ZoneRecords, log: RecordLog): void {
  eachRecord(from, node, first, (record) => {
    if (record.type !== RecordType.SOA && !to.holds(record)) log.addPlain(record);
  });
}

/** The last differences of a zone, up to a limit in bytes. */
export class ZoneJournal {
  #differences: ZoneDifference[] = [];

  /** Bytes of memory. */
  get size(): number {
    return this.#differences.reduce((sum, { removed, added }) => sum + removed.size + added.size, 0);
  }

  /** @param limit bytes for all of them */
  add(difference: ZoneDifference, limit: number): void {
    if (this.#differences.at(-1)?.toSerial !== difference.fromSerial) this.clear();
    this.#differences.push(difference);
    while (this.size > limit) this.#differences.shift();
  }

  clear(): void {
    this.#differences = [];
  }

  /** The steps from a serial to `current`, as the records of IXFR between the first and the last SOA record. */
  since(serial: number, current: number): Iterable<ResourceRecord> | undefined {
    const first = this.#differences.findIndex(({ fromSerial }) => fromSerial === serial);
    if (first < 0 || this.#differences.at(-1)?.toSerial !== current) return undefined;
    return stepsOf(this.#differences.slice(first));
  }
}

function* stepsOf(differences: readonly ZoneDifference[]): Generator<ResourceRecord> {
  for (const { before, after, removed, added } of differences) {
    yield before;
    yield* removed.records();
    yield after;
    yield* added.records();
  }
}

/**
 * Maximum bytes of a journal: sending more than half of the zone is not worthwhile, and the journal's tables take as much as its
 * records.
 */
export function journalLimit(zone: Zone): number {
  return Math.max(256 * 1024, zone.size / 4);
}
