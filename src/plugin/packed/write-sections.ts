/** Writes the sections of a reply as an entry: see entry-layout.ts. */
import type { EncodedSections } from "../../dns/encoded-sections.ts";
import { FOLD } from "../../dns/octets.ts";
import type { Asked } from "../message/asked.ts";
import { NAME_START, tableStart } from "./entry-layout.ts";

/** Below this size a loop copies faster than a call into the engine. */
const SHORT_COPY = 128;

/**
 * Writes the question, its name in lower case, and the records.
 * @param message the virtual start of a message with them
 */
export function writeMessage(
  octets: Uint8Array,
  message: number,
  { bytes, nameEnd, type, class: recordClass }: Asked,
  { bytes: records, start, end }: EncodedSections,
): void {
  for (let at = NAME_START; at < nameEnd; at++) octets[message + at] = FOLD[bytes[at] as number] as number;
  const question = message + nameEnd;
  octets[question] = type >>> 8;
  octets[question + 1] = type;
  octets[question + 2] = recordClass >>> 8;
  octets[question + 3] = recordClass;
  if (end - start > SHORT_COPY) octets.set(records.subarray(start, end), message + start);
  else for (let at = start; at < end; at++) octets[message + at] = records[at] as number;
}

/**
 * Writes the places of records and of runs of addresses, for an entry of several records.
 * @param head its offset in words
 */
export function writeTables(words: Int32Array, head: number, sections: EncodedSections): void {
  const { count, end, recordStarts, typeOffsets, runTable, runCount } = sections;
  let at = head + tableStart(end);
  for (let record = 0; record < count; record++)
    words[at++] = (recordStarts[record] as number) | ((typeOffsets[record] as number) << 16);
  for (let number = 0; number < 4 * runCount; number += 2)
    words[at++] = (runTable[number] as number) | ((runTable[number + 1] as number) << 16);
}
