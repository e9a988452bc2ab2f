/** Writes an answer into its block. */
import type { EncodedSections } from "../../dns/encoded-sections.ts";
import {
  type BlockMemory,
  UNIT_OCTETS,
  UNIT_WORDS,
  unitsFor,
} from "../../lib/collections/slab/block-memory.ts";
import type { Asked } from "../../plugin/message/asked.ts";
import {
  entryOctets,
  Head,
  Key,
  MESSAGE_OCTETS,
  NEVER,
  wildcardStart,
} from "../../plugin/packed/entry-layout.ts";
import { writeMessage, writeTables } from "../../plugin/packed/write-sections.ts";
import type { EntryKey } from "./kept-answer.ts";
import type { MentionedNames } from "./mentioned-names.ts";

/** The contents of an entry. */
export interface EntryContent {
  readonly asked: Asked;
  /** The sections of the reply to the question. */
  readonly sections: EncodedSections;
  readonly rcode: number;
  /** RA and AD. */
  readonly flags: number;
  /** Seconds. */
  readonly ttl: number;
  /** `Clock.now()`, milliseconds. */
  readonly expiresAt: number;
  readonly error: boolean;
  readonly answers: boolean;
  /** The metadata `zone/wildcard` in UTF-8. */
  readonly wildcard: Uint8Array | undefined;
  /** Hits of the answer that this one replaces. */
  readonly hits: Hits | undefined;
  /** Further names that the answer depends on. */
  readonly mentioned?: MentionedNames;
}

/** How often an answer was used. */
export interface Hits {
  /** Hits in close succession. */
  readonly count: number;
  /** `Clock.now()`, milliseconds. */
  readonly lastAt: number;
}

/** Milliseconds from `origin` to `time`, limited to 32 bits (24 days). */
export function relative(time: number, origin: number): number {
  return Math.max(NEVER + 1, Math.min(0x7fff_ffff, Math.round(time - origin)));
}

/** Units of an entry without its mentions. */
export function entryUnits({ sections, wildcard }: EntryContent): number {
  return unitsFor(
    entryOctets({
      end: sections.end,
      records: sections.count,
      runs: sections.runCount,
      wildcard: wildcard?.length ?? 0,
    }),
  );
}

/** Writes an entry; its links in the name tree stay. @param shift milliseconds to add to `expiresAt` */
export function writeEntry(
  { words, octets }: BlockMemory,
  floats: Float64Array,
  unit: number,
  key: EntryKey,
  serial: number,
  content: EntryContent,
  shift: number,
): void {
  const { asked, sections, wildcard, hits, mentioned } = content;
  const { end, count, answerCount, authorityCount, additionalCount } = sections;
  const head = unit * UNIT_WORDS;
  words[head + Head.HASH] = key.hash;
  words[head + Head.SERIAL] = serial;
  words[head + Head.KEY] =
    asked.nameEnd |
    (key.traits << Key.TRAITS_SHIFT) |
    ((content.rcode & Key.RCODE) << Key.RCODE_SHIFT) |
    (content.error ? Key.ERROR : 0) |
    (content.answers ? Key.ANSWERS : 0) |
    (wildcard === undefined ? 0 : Key.WILDCARD) |
    (mentioned === undefined || mentioned.count === 0 ? 0 : Key.MENTIONS);
  words[head + Head.FLAGS_RUNS] = content.flags | (sections.runCount << 16);
  words[head + Head.END_ADDITIONALS] = end | (additionalCount << 16);
  words[head + Head.ANSWERS_AUTHORITIES] = answerCount | (authorityCount << 16);
  words[head + Head.TTL] = content.ttl;
  words[head + Head.HITS_TYPE] = (sections.firstTypeOffset << 16) | (hits?.count ?? 0);
  floats[(head + Head.EXPIRES) >> 1] = content.expiresAt + shift;
  words[head + Head.LAST_HIT] = hits === undefined ? NEVER : relative(hits.lastAt, content.expiresAt);
  words[head + Head.RETRY] = NEVER;
  writeMessage(octets, unit * UNIT_OCTETS + MESSAGE_OCTETS, asked, sections);
  if (count > 1) writeTables(words, head, sections);
  if (wildcard !== undefined) {
    const at = head + wildcardStart(end, count, sections.runCount);
    words[at] = wildcard.length;
    octets.set(wildcard, 4 * (at + 1));
  }
}

/** Reads the metadata of an entry that has some. */
export function readWildcard({ words, octets }: BlockMemory, unit: number): string {
  const head = unit * UNIT_WORDS;
  const end = (words[head + Head.END_ADDITIONALS] as number) & 0xffff;
  const additionals = (words[head + Head.END_ADDITIONALS] as number) >>> 16;
  const both = words[head + Head.ANSWERS_AUTHORITIES] as number;
  const records = (both & 0xffff) + (both >>> 16) + additionals;
  const runs = (words[head + Head.FLAGS_RUNS] as number) >>> 16;
  const at = 4 * (head + wildcardStart(end, records, runs));
  const length = words[at / 4] as number;
  return new TextDecoder().decode(octets.slice(at + 4, at + 4 + Math.min(length, MAX_WILDCARD_OCTETS)));
}

/** Longer metadata is truncated: no name is longer. */
export const MAX_WILDCARD_OCTETS = 4096;

/**
 * Counts a hit. @param at milliseconds, see {@link relative} @param windowMs a hit later than this after the previous
 * one starts a new count @returns hits in close succession
 */
export function writeHit(words: Int32Array, head: number, at: number, windowMs: number): number {
  const last = words[head + Head.LAST_HIT] as number;
  const before = (words[head + Head.HITS_TYPE] as number) & 0xffff;
  const hits = last === NEVER || at - last > windowMs ? 1 : Math.min(before + 1, 0xffff);
  words[head + Head.HITS_TYPE] = ((words[head + Head.HITS_TYPE] as number) & ~0xffff) | hits;
  words[head + Head.LAST_HIT] = at;
  return hits;
}
