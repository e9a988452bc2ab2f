/** Formats parts of a message for people. */
import { Flag } from "./numbers.ts";
import type { ResourceRecord } from "./record-kind.ts";
import { formatRecord } from "./resource-record.ts";

const FLAGS = { aa: Flag.AA, tc: Flag.TC, rd: Flag.RD, ra: Flag.RA, ad: Flag.AD, cd: Flag.CD };

/** In the order of the header, without QR. */
export const FLAG_NAMES: readonly string[] = Object.keys(FLAGS);

/** `aa`, `rd`: the flags that are set, in the order of the header. */
export function flagNames(flags: number): string[] {
  return Object.entries(FLAGS).flatMap(([name, bit]) => ((flags & bit) === 0 ? [] : name));
}

/** Fields separated by one space. */
export function recordText(record: ResourceRecord): string {
  return formatRecord(record).replaceAll("\t", " ");
}
