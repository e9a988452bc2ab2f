/** Adds notes to a traced query about the changes that rules made to its reply. */
import { formatData, rcodeName, recordTypeName } from "../../dns/index.ts";
import type { Outcome, Query } from "../../plugin/index.ts";

/** Bound for the number of notes: replies may have thousands of records. */
const MAX_TOLD = 8;

/** The parts of a reply that are compared before and after the rules. */
export interface Seen {
  readonly rcode: number;
  readonly records: readonly SeenRecord[];
}

interface SeenRecord {
  readonly type: string;
  readonly owner: string;
  readonly ttl: number;
  readonly data: string;
}

/** @returns `undefined` for outcomes that rules do not change */
export function seen(outcome: Outcome): Seen | undefined {
  if (outcome.kind === "failed") return { rcode: outcome.rcode, records: [] };
  if (outcome.kind !== "reply") return undefined;
  const { answer, authority, additional } = outcome;
  const records = [...answer, ...authority, ...additional].map((record) => ({
    type: recordTypeName(record.type),
    owner: record.name.toString(),
    ttl: record.ttl,
    data: formatData(record),
  }));
  return { rcode: outcome.rcode, records };
}

export function noteChanges(query: Query, asked: Query, before: Seen, outcome: Outcome): void {
  const after = seen(outcome);
  if (after === undefined) return;
  const told = new Set<string>();
  if (!asked.name.equals(query.name)) told.add(`the question in the reply is ${query.name} again`);
  if (after.rcode !== before.rcode)
    told.add(`${rcodeName(before.rcode)} becomes ${rcodeName(after.rcode)} in the reply`);
  // If an alias was resolved again the records are others, which has its own note.
  if (after.records.length === before.records.length)
    for (const [index, record] of after.records.entries()) {
      const was = before.records[index];
      if (was?.type === record.type) addRecordChanges(told, was, record);
    }
  let left = MAX_TOLD;
  for (const text of told) {
    if (left-- === 0) break;
    query.trace?.note(text);
  }
  if (told.size > MAX_TOLD) query.trace?.note(`and ${told.size - MAX_TOLD} more changes in the reply`);
}

function addRecordChanges(told: Set<string>, was: SeenRecord, is: SeenRecord): void {
  if (was.owner !== is.owner) told.add(`the owner ${was.owner} becomes ${is.owner} in the reply`);
  if (was.ttl !== is.ttl) told.add(`the TTL ${was.ttl} becomes ${is.ttl} in the reply`);
  if (was.data !== is.data) told.add(`the ${is.type} data ${was.data} becomes ${is.data} in the reply`);
}
