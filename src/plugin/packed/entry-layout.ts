/**
 * The layout of an answer in its block of memory: a head of 64 octets, then the question's name in lower case, type
 * and class, and the records, at the same offsets from each other as in the message. Behind them, each at a multiple
 * of four: the table of the records if there are several (start, and place of the type, a word per record), the runs
 * of addresses (two words per run), and the metadata `zone/wildcard`.
 */

/** Words of the head. */
export const Head = {
  HASH: 0,
  /** Distinguishes an entry from its successors in the same block. */
  SERIAL: 1,
  /** End of the name, traits, rcode, and kind of answer: see {@link Key}. */
  KEY: 2,
  /** RA and AD as received; in the upper half the number of runs. */
  FLAGS_RUNS: 3,
  /** End of the records; in the upper half the number of records in the additional section. */
  END_ADDITIONALS: 4,
  ANSWERS_AUTHORITIES: 5,
  /** Seconds. */
  TTL: 6,
  /** Hits in close succession; in the upper half the place of the first record's type. */
  HITS_TYPE: 7,
  /** Milliseconds of `Clock.now()`, as a float of two words. */
  EXPIRES: 8,
  /** Milliseconds of the last hit, and of the earliest next refresh, both relative to the end of the TTL. */
  LAST_HIT: 10,
  RETRY: 11,
  /** Links of the name tree. */
  NODE: 12,
  NEXT_OF_NODE: 13,
  PREVIOUS_OF_NODE: 14,
  NEXT_OF_NAME: 15,
} as const;

/** Bits of {@link Head.KEY}. */
export const Key = {
  NAME_END: 0x1ff,
  TRAITS_SHIFT: 9,
  /** End of the name and traits. */
  MATCH: 0x7fff,
  RCODE_SHIFT: 15,
  RCODE: 0xfff,
  /** SERVFAIL or NOTIMP: cached briefly to spare the upstream, never served stale. */
  ERROR: 1 << 27,
  /** NOERROR with records of the queried type. */
  ANSWERS: 1 << 28,
  /** It had the metadata `zone/wildcard`. */
  WILDCARD: 1 << 29,
  /** It depends on further names, which are stored at its end. */
  MENTIONS: 1 << 30,
} as const;

const HEAD_WORDS = 16;
export const HEAD_OCTETS = 4 * HEAD_WORDS;

/** In a message the question's name follows the header. */
export const NAME_START = 12;
/** The virtual start of the message, relative to the block: its name follows the head. */
export const MESSAGE_OCTETS = HEAD_OCTETS - NAME_START;
export const MESSAGE_WORDS = MESSAGE_OCTETS / 4;

/** No hit, or no failed refresh, so far. */
export const NEVER = -0x8000_0000;

/** The sizes of an entry's parts, which give its total size. */
export interface EntryShape {
  /** End of the records. */
  readonly end: number;
  readonly records: number;
  readonly runs: number;
  /** Octets of the metadata, 0 for none. */
  readonly wildcard: number;
}

/** Words from the block's start to the table of records. */
export function tableStart(end: number): number {
  return MESSAGE_WORDS + ((end + 3) >> 2);
}

/** Words from the block's start to the runs of addresses. A single record needs no table: the head has its place. */
export function runsStart(end: number, records: number): number {
  return tableStart(end) + (records > 1 ? records : 0);
}

/** Words from the block's start to the metadata. */
export function wildcardStart(end: number, records: number, runs: number): number {
  return runsStart(end, records) + 2 * runs;
}

export function entryOctets({ end, records, runs, wildcard }: EntryShape): number {
  const words = wildcardStart(end, records, runs) + (wildcard > 0 ? 1 + ((wildcard + 3) >> 2) : 0);
  return 4 * words;
}
