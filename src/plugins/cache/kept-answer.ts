/** The entry found for one query: numbers read out of a block, and a view of the records in it. */
import type { Edns } from "../../dns/edns.ts";
import type { EncodedSections } from "../../dns/encoded-sections.ts";

/** The answer had the flag CO (RFC 9824 section 5.1). CO is stored in the bit of Z, which no other flag uses. */
export const KEPT_COMPACT = 0x40;
/** EDNS of such an answer. The rest of its OPT follows from the query. */
export const COMPACT_EDNS: Edns = { udpSize: 1232, version: 0, dnssecOk: true, compactOk: true, options: [] };

/** Where in the table the answer to a query is stored. */
export interface EntryKey {
  readonly hash: number;
  /** See `answerTraits`. */
  readonly traits: number;
}

/** Identifies an entry while it exists. */
export interface EntryMark {
  readonly unit: number;
  readonly serial: number;
}

/** One answer. A slab uses a single object for all lookups: a caller that waits must take {@link KeptAnswer.held}. */
export class KeptAnswer implements EntryKey, EntryMark {
  hash = 0;
  traits = 0;
  unit = -1;
  serial = 0;
  /** The memory that holds the entry: valid as long as its serial is in its head. */
  words: Int32Array = NO_WORDS;
  sections: EncodedSections;
  rcode = 0;
  /** RA and AD as received, and {@link KEPT_COMPACT}. */
  flags = 0;
  /** TTL in seconds when the answer was received. */
  ttl = 0;
  /** `Clock.now()`, milliseconds. */
  expiresAt = 0;
  /** Whether the entry is from the cache for denials. */
  readonly denial: boolean;
  /** SERVFAIL or NOTIMP: cached briefly to spare the upstream, never served once expired. */
  error = false;
  /** NOERROR with records of the type that was asked for. */
  answers = false;
  /** The metadata `zone/wildcard` that came with the answer. */
  wildcard: string | undefined = undefined;

  constructor(denial: boolean, sections: EncodedSections) {
    this.denial = denial;
    this.sections = sections;
  }

  /** Whole seconds until it expires, 0 afterwards. */
  remainingTtl(now: number): number {
    const seconds = Math.ceil((this.expiresAt - now) / 1000);
    return seconds > this.ttl ? this.ttl : seconds < 0 ? 0 : seconds;
  }

  /** Returns a copy that does not change with the entry. */
  held(): KeptAnswer {
    const copy = new KeptAnswer(this.denial, this.sections.keep());
    copy.hash = this.hash;
    copy.traits = this.traits;
    copy.unit = this.unit;
    copy.serial = this.serial;
    copy.words = this.words;
    copy.rcode = this.rcode;
    copy.flags = this.flags;
    copy.ttl = this.ttl;
    copy.expiresAt = this.expiresAt;
    copy.error = this.error;
    copy.answers = this.answers;
    copy.wildcard = this.wildcard;
    return copy;
  }
}

const NO_WORDS = new Int32Array(0);

export const WILDCARD_LABEL = "zone/wildcard";
