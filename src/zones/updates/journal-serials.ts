/** What the SOA records in a journal reveal about its zone and file. */
import type { Name } from "../../dns/name.ts";
import { SOA } from "../../dns/record-table.ts";
import { RecordType } from "../../dns/type-names.ts";
import { isAsNew } from "../../plugin/contract/transfer.ts";
import type { JournalContents, JournalDamage } from "./journal-frames.ts";

/** If the head of a journal is lost, its last serial has to be newer than the file's. */
export function isBasedOn({ base, steps }: JournalContents, serial: number): boolean {
  if (base !== undefined) return base === serial;
  const last = steps.findLast(({ sign, record }) => sign === "+" && SOA.is(record));
  return last !== undefined && SOA.is(last.record) && !isAsNew(serial, last.record.data.serial);
}

/** The zone of the updates. */
export function zoneOf({ steps }: JournalContents): Name | undefined {
  return steps.find(({ record }) => record.type === RecordType.SOA)?.record.name;
}

/** An upper bound of the serials lost in the damaged places of a journal: secondaries may have seen the last of them. */
export function serialsLost(damage: readonly JournalDamage[]): number {
  const octets = damage.reduce((sum, { length }) => sum + length, 0);
  return Math.min(1 + Math.ceil(octets / LEAST_FRAME), MOST_SERIALS);
}

/** Bytes of the smallest possible frame. */
const LEAST_FRAME = 32;
/** RFC 1982: a serial that is further away counts as older. */
const MOST_SERIALS = 2 ** 30;
