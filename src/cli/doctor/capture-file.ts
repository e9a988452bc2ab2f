/** Captures as text: JSON, a line each, as `portolan tail -json` writes queries; lines with facts about the server among them. */
import type { QueryRow } from "../../console/api-types.ts";
import type { Capture, ImpossibleName, PodTemplate, ServerFacts } from "../../console/doctor/capture.ts";
import { isObject, listMember, member, textMember } from "../../kubernetes/objects/json.ts";
import { FlagError } from "../flag-table.ts";
import { isQueryRow } from "../live/tail.ts";

/** What a line holds besides a query. */
interface FactsLine {
  readonly facts: ServerFacts;
}

export function captureLines({ rows, first, last, impossible, pod }: Capture): string[] {
  const facts = (each: ServerFacts | undefined): string[] =>
    each === undefined ? [] : [JSON.stringify({ facts: each } satisfies FactsLine)];
  return [
    ...facts(first),
    ...rows.map((row) => JSON.stringify(row)),
    ...facts(last),
    ...(impossible === undefined ? [] : [JSON.stringify({ impossible })]),
    ...(pod === undefined ? [] : [JSON.stringify({ pod })]),
  ];
}

/** @throws FlagError naming the line that is neither a query nor facts */
export function readCapture(text: string, file: string): Capture {
  const rows: QueryRow[] = [];
  let first: ServerFacts | undefined;
  let last: ServerFacts | undefined;
  let impossible: ImpossibleName | undefined;
  let pod: PodTemplate | undefined;
  const lines = text.split("\n");
  for (const [at, line] of lines.entries()) {
    if (line.trim() === "") continue;
    const value = parsed(line);
    // Who writes may have been stopped in the middle of the last line.
    if (value === undefined && at > 0 && at === lines.length - 1) continue;
    const facts = member(value, "facts");
    const asked = member(value, "impossible");
    const template = member(value, "pod");
    if (isQueryRow(value)) rows.push(value);
    else if (isFacts(facts)) {
      first ??= facts;
      last = facts;
    } else if (isImpossible(asked)) impossible = asked;
    else if (isPod(template)) pod = template;
    else
      throw new FlagError(
        `${file}:${at + 1}: neither a query nor facts about a server: a capture is what 'portolan doctor -record' or 'portolan tail -json' writes`,
        2,
        false,
      );
  }
  if (rows.length === 0 && last === undefined)
    throw new FlagError(`${file}: holds no query and no facts about a server`, 2, false);
  rows.sort((one, other) => one.time - other.time);
  return { rows, first: first === last ? undefined : first, last, impossible, pod };
}

/** Whether all is there that the rules look at. */
export function isFacts(value: unknown): value is ServerFacts {
  const now = member(value, "now");
  return (
    textMember(now, "hostname") !== "" &&
    Array.isArray(member(now, "upstreams")) &&
    listMember(now, "clusters").every((cluster) => Array.isArray(member(cluster, "families"))) &&
    isObject(member(now, "memory")) &&
    isObject(member(member(value, "machine"), "memory")) &&
    typeof member(member(value, "machine"), "finished") === "number" &&
    Array.isArray(member(value, "caches")) &&
    typeof member(member(value, "configuration"), "text") === "string" &&
    Array.isArray(member(member(value, "configuration"), "blocks"))
  );
}

function isImpossible(value: unknown): value is ImpossibleName {
  return textMember(value, "rcode") !== "" && Array.isArray(member(value, "answer"));
}

function isPod(value: unknown): value is PodTemplate {
  return textMember(value, "owner") !== "" && typeof member(value, "gracePeriod") === "number";
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
