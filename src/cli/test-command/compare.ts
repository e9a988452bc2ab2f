/** Compares an answer with the expectation of a test. */

import { flagNames, recordText } from "../../dns/message-text.ts";
import { rcodeName } from "../../dns/numbers.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import type { ClientAnswer } from "../../server/explaining/in-process-client.ts";
import { type ExpectedRecord, recordKey, type TtlRange } from "./expected-record.ts";
import { normalized } from "./fake-upstreams.ts";
import type { Expectation } from "./test-file.ts";

/** One deviation from the expectation. */
export interface Difference {
  /** `rcode`, `answer`, … */
  readonly subject: string;
  /** Lines that begin with `- ` for missing and `+ ` for unexpected text. */
  readonly lines: readonly string[];
}

/** @param asked TO words of the upstreams that were asked, in order */
export function compare(expect: Expectation, answer: ClientAnswer, asked: readonly string[]): Difference[] {
  const { message, outcome } = answer;
  if (message === undefined) return different("answer", expect.rcode, "nothing: the query was dropped");
  const differences = [
    different("rcode", expect.rcode, rcodeName(message.rcode)),
    ...(["answer", "authority", "additional"] as const).map((section) =>
      compareRecords(section, expect[section], message[section]),
    ),
    compareTtl(expect.ttl, message.answer),
    expect.flags === undefined
      ? []
      : different("flags", sorted(expect.flags), sorted(flagNames(message.flags))),
    expect.plugin === undefined
      ? []
      : different(
          "plugin",
          expect.plugin,
          (outcome.kind === "dropped" ? undefined : outcome.plugin) ?? "none",
        ),
    expect.upstreams === undefined
      ? []
      : different("upstream", sorted(expect.upstreams.map(normalized)), sorted(asked.map(normalized))),
  ];
  return differences.flat();
}

function different(subject: string, expected: string, actual: string): Difference[] {
  return expected === actual ? [] : [{ subject, lines: [`- ${expected}`, `+ ${actual}`] }];
}

function sorted(words: readonly string[]): string {
  return [...new Set(words)].sort().join(" ") || "none";
}

/** In any order; a record that is listed twice must occur twice. */
function compareRecords(
  subject: string,
  expected: readonly ExpectedRecord[] | undefined,
  actual: readonly ResourceRecord[],
): Difference[] {
  if (expected === undefined) return [];
  const left = [...actual];
  const missing: string[] = [];
  for (const record of expected) {
    const matches = left.filter((other) => recordKey(other) === record.key);
    const match = matches.find(({ ttl }) => isWithin(ttl, record.ttl));
    if (match === undefined) missing.push(`- ${record.text}`);
    else left.splice(left.indexOf(match), 1);
  }
  const extra = left.map((record) => `+ ${recordText(record)}`);
  return missing.length + extra.length === 0 ? [] : [{ subject, lines: [...missing, ...extra] }];
}

function compareTtl(range: TtlRange | undefined, records: readonly ResourceRecord[]): Difference[] {
  const outside = records.filter(({ ttl }) => !isWithin(ttl, range));
  if (range === undefined || outside.length === 0) return [];
  const expected = range.least === range.most ? `${range.least}` : `${range.least}-${range.most}`;
  return [
    { subject: "ttl", lines: [`- ${expected}`, ...outside.map((record) => `+ ${recordText(record)}`)] },
  ];
}

function isWithin(ttl: number, range: TtlRange | undefined): boolean {
  return range === undefined || (ttl >= range.least && ttl <= range.most);
}
