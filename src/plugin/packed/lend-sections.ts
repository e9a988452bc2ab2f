/** Copies the octets of an entry to sections that a reply can use. */
import { RUN_NUMBERS } from "../../dns/address-runs.ts";
import type { EncodedSections, LentSections } from "../../dns/encoded-sections.ts";
import { Head, MESSAGE_WORDS, NAME_START, tableStart } from "./entry-layout.ts";
import type { FramePool } from "./frames.ts";

/**
 * Copies the records of an entry to a frame.
 * @param head the entry's offset in words
 * @param start end of the question
 * @returns `undefined` for an invalid entry: another thread is writing there
 */
export function lendSections(
  frames: FramePool,
  words: Int32Array,
  head: number,
  start: number,
): EncodedSections | undefined {
  const endAdditionals = words[head + Head.END_ADDITIONALS] as number;
  const end = endAdditionals & 0xffff;
  const additionals = endAdditionals >>> 16;
  const both = words[head + Head.ANSWERS_AUTHORITIES] as number;
  const answers = both & 0xffff;
  const authorities = both >>> 16;
  const count = answers + authorities + additionals;
  // No message has that many records: another thread is writing there.
  if (count > MOST_RECORDS) return undefined;
  const firstType = (words[head + Head.HITS_TYPE] as number) >>> 16;
  const frame = frames.take(end + 3, count);
  const { sections, words: target } = frame;
  const from = head + MESSAGE_WORDS;
  // The question is copied as well, because records point to its name.
  for (let at = NAME_START / 4; at < (end + 3) >> 2; at++) target[at] = words[from + at] as number;
  const { recordStarts, typeOffsets } = sections;
  recordStarts[0] = start;
  typeOffsets[0] = firstType;
  let runs = 0;
  if (count > 1) {
    let at = head + tableStart(end);
    for (let record = 0; record < count; record++) {
      const places = words[at++] as number;
      recordStarts[record] = places;
      typeOffsets[record] = places >>> 16;
    }
    runs = (words[head + Head.FLAGS_RUNS] as number) >>> 16;
    if (runs * RUN_NUMBERS > frame.runs.length) return undefined;
    for (let number = 0; number < runs * RUN_NUMBERS; number += 2) {
      const pair = words[at++] as number;
      frame.runs[number] = pair;
      frame.runs[number + 1] = pair >>> 16;
    }
  }
  recordStarts[count] = end;
  const lent = sections as LentSections;
  lent.start = start;
  lent.end = end;
  lent.answerCount = answers;
  lent.authorityCount = authorities;
  lent.additionalCount = additionals;
  lent.firstTypeOffset = firstType;
  sections.lendRuns(frame.runs, runs);
  return sections;
}

/** The smallest record has 11 octets. */
const MOST_RECORDS = 0xffff / 11;
