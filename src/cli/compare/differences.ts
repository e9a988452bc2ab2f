/** Compares two replies to one question. */
import type { Message } from "../../dns/message.ts";
import { flagNames } from "../../dns/message-text.ts";
import { rcodeName } from "../../dns/numbers.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { SOA } from "../../dns/record-table.ts";
import { canonicalData, formatRecord } from "../../dns/resource-record.ts";
import type { NoReply, ServerReply } from "./asking.ts";

export const SECTIONS = ["answer", "authority", "additional"] as const;
export type ComparedSection = (typeof SECTIONS)[number];

/** One way in which two replies differ. Equal kinds are grouped in the report. */
export interface ReplyDifference {
  /** `rcode: NXDOMAIN in OLD, NOERROR in NEW` */
  readonly kind: string;
  /** What only one of the servers sent: lines that begin with `- ` for the old and `+ ` for the new one. */
  readonly lines: readonly string[];
}

/** Flags of the header that say something about the answer; RD and CD are copies of the query's. */
const COMPARED_FLAGS: readonly string[] = ["aa", "ra", "ad"];

/** @returns the ways in which they differ; a different rcode hides differences of records */
export function differencesOf(
  old: ServerReply | NoReply,
  now: ServerReply | NoReply,
  strict: boolean,
): ReplyDifference[] {
  if ("fault" in old || "fault" in now) return silence(old, now);
  const [a, b] = [old.message, now.message];
  if (a.rcode !== b.rcode) {
    const [before, after] = [rcodeName(a.rcode), rcodeName(b.rcode)];
    const lines = [`- ${before}`, ...recordLines("-", a), `+ ${after}`, ...recordLines("+", b)];
    return [{ kind: `rcode: ${before} in OLD, ${after} in NEW`, lines }];
  }
  const found = [
    ...differentFlags(a, b),
    ...SECTIONS.flatMap((section) => differentRecords(section, a[section], b[section])),
  ];
  if (!strict) return found;
  return [
    ...found,
    ...only("truncated over UDP", old.wasTruncated, now.wasTruncated),
    ...only("OPT record", a.edns !== undefined, b.edns !== undefined),
    ...(found.length > 0
      ? []
      : SECTIONS.flatMap((section) => strictlyDifferent(section, a[section], b[section]))),
  ];
}

function silence(old: ServerReply | NoReply, now: ServerReply | NoReply): ReplyDifference[] {
  const silent: ReplyDifference[] = [];
  const said = (sign: string, side: ServerReply | NoReply): string =>
    `${sign} ${"fault" in side ? side.fault : rcodeName(side.message.rcode)}`;
  const lines = [said("-", old), said("+", now)];
  // Both are silent, as after a drop by policy: that is the same.
  if ("fault" in old && "fault" in now) return silent;
  if ("fault" in old) silent.push({ kind: "no reply from OLD", lines });
  if ("fault" in now) silent.push({ kind: "no reply from NEW", lines });
  return silent;
}

function differentFlags(a: Message, b: Message): ReplyDifference[] {
  const [before, after] = [flagNames(a.flags), flagNames(b.flags)];
  return COMPARED_FLAGS.flatMap((flag) => only(`flag ${flag}`, before.includes(flag), after.includes(flag)));
}

function only(subject: string, inOld: boolean, inNew: boolean): ReplyDifference[] {
  if (inOld === inNew) return [];
  return [
    { kind: `${subject}: only in ${inOld ? "OLD" : "NEW"}`, lines: [`${inOld ? "-" : "+"} ${subject}`] },
  ];
}

function differentRecords(
  section: ComparedSection,
  old: readonly ResourceRecord[],
  now: readonly ResourceRecord[],
): ReplyDifference[] {
  const [before, after] = [new Set(old.map(recordKey)), new Set(now.map(recordKey))];
  const missing = old.filter((record) => !after.has(recordKey(record)));
  const added = now.filter((record) => !before.has(recordKey(record)));
  if (missing.length + added.length === 0) return [];
  let how = "other records";
  if (added.length === 0) how = now.length === 0 ? "only in OLD" : "more records in OLD";
  else if (missing.length === 0) how = old.length === 0 ? "only in NEW" : "more records in NEW";
  const lines = [...missing.map((each) => `- ${text(each)}`), ...added.map((each) => `+ ${text(each)}`)];
  return [{ kind: `${section}: ${how}`, lines }];
}

/** Order, TTLs and letter case of sections that are equal otherwise. */
function strictlyDifferent(
  section: ComparedSection,
  old: readonly ResourceRecord[],
  now: readonly ResourceRecord[],
): ReplyDifference[] {
  const [before, after] = [old.map(text), now.map(text)];
  if (before.join("\n") === after.join("\n")) return [];
  const lines = [...before.map((each) => `- ${each}`), ...after.map((each) => `+ ${each}`)];
  if (sorted(before) === sorted(after)) return [{ kind: `${section}: other order`, lines }];
  const [oldTtls, newTtls] = [old, now].map((records) =>
    sorted(records.map((record) => `${recordKey(record)} ${record.ttl}`)),
  );
  if (oldTtls !== newTtls) return [{ kind: `${section}: other TTL`, lines }];
  const isCase = sorted(before).toLowerCase() === sorted(after).toLowerCase();
  return [{ kind: `${section}: other ${isCase ? "letter case" : "serial"}`, lines }];
}

function sorted(lines: readonly string[]): string {
  return [...lines].sort().join("\n");
}

/**
 * Equal for records that mean the same: neither letter case nor the TTL counts. Nor does the serial of an SOA record, which is a
 * time for many plugins.
 */
function recordKey(record: ResourceRecord): string {
  const data = SOA.is(record) ? { ...record, data: { ...record.data, serial: 0 } } : record;
  const octets = Buffer.from(canonicalData(data)).toString("latin1");
  return `${record.name.toLowerCase()} ${record.type} ${octets}`;
}

function recordLines(sign: string, message: Message): string[] {
  return message.answer.map((record) => `${sign} ${text(record)}`);
}

function text(record: ResourceRecord): string {
  return formatRecord(record).replaceAll("\t", " ");
}
