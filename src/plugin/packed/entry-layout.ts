/**
 * How an answer lies in its block of memory: a head of 64 octets, then the question's name in lower case, type and class, and the records, at
 * the same offsets from each other as in the message. Behind them, each at a multiple of four: the table of the records where there are
 * several (start and place of the type, a word a record), the runs of addresses (two words a run), the metadata `zone/wildcard`.
 */

/** Words of the head. */
export const Head = {
  HASH: 0,
  /** Tells one entry from the next at the same place. */
  SERIAL: 1,
  /** End of the name, traits, rcode, and what kind of answer it is: see {@link Key}. */
  KEY: 2,
  /** RA and AD as they came; above them the number of runs. */
  FLAGS_RUNS: 3,
  /** End of the records; above it how many are in the additional section. */
  END_ADDITIONALS: 4,
  ANSWERS_AUTHORITIES: 5,
  /** Seconds. */
  TTL: 6,
  /** Hits in close succession; above them the place of the first record's type. */
  HITS_TYPE: 7,
  /** Milliseconds of `Clock.now()`, as a float of two words. */
  EXPIRES: 8,
  /** Milliseconds of the last hit, and before which no refresh is tried, both from the end of the TTL on. */
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
  /** SERVFAIL or NOTIMP: kept for a moment to spare the upstream, never served once expired. */
  ERROR: 1 << 27,
  /** NOERROR with records of the type that was asked for. */
  ANSWERS: 1 << 28,
  /** It came with the metadata `zone/wildcard`. */
  WILDCARD: 1 << 29,
  /** It rests on further names, which stand at its end. */
  MENTIONS: 1 << 30,
} as const;

const HEAD_WORDS = 16;
export const HEAD_OCTETS = 4 * HEAD_WORDS;

/** The name of the question stands behind the header of a message. */
export const NAME_START = 12;
/** Where a message would begin, from the block on: its name stands behind the head. */
export const MESSAGE_OCTETS = HEAD_OCTETS - NAME_START;
export const MESSAGE_WORDS = MESSAGE_OCTETS / 4;

/** No hit, no refresh that failed: long ago. */
export const NEVER = -0x8000_0000;

/** Numbers of an entry and its parts, from which its size follows. */
export interface EntryShape {
  /** End of the records. */
  readonly end: number;
  readonly records: number;
  readonly runs: number;
  /** Octets of the metadata, 0 for none. */
  readonly wildcard: number;
}

/** Words from the block on to the table of records. */
export function tableStart(end: number): number {
  return MESSAGE_WORDS + ((end + 3) >> 2);
}

/** Words from the block on to the runs of addresses. One record needs no table: its place follows from the head. */
export function runsStart(end: number, records: number): number {
  return tableStart(end) + (records > 1 ? records : 0);
}

/** Words from the block on to the metadata. */
export function wildcardStart(end: number, records: number, runs: number): number {
  return runsStart(end, records) + 2 * runs;
}

export function entryOctets({ end, records, runs, wildcard }: EntryShape): number {
  const words = wildcardStart(end, records, runs) + (wildcard > 0 ? 1 + ((wildcard + 3) >> 2) : 0);
  return 4 * words;
}
