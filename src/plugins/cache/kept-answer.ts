/** What was found in the cache for one query: numbers read out of a block, and the records on loan. */
import type { Edns } from "../../dns/edns.ts";
import type { EncodedSections } from "../../dns/encoded-sections.ts";

/** The answer had the flag CO (RFC 9824 section 5.1). No other flag has this bit: it is that of Z. */
export const KEPT_COMPACT = 0x40;
/** What such an answer has. All else of its OPT follows from the query. */
export const COMPACT_EDNS: Edns = { udpSize: 1232, version: 0, dnssecOk: true, compactOk: true, options: [] };

/** Where in the table the answer to a query stands. */
export interface EntryKey {
  readonly hash: number;
  /** See `answerTraits`. */
  readonly traits: number;
}

/** Names one entry for as long as it is there. */
export interface EntryMark {
  readonly unit: number;
  readonly serial: number;
}

/** One answer. Slabs use one object for all that they find: who waits takes {@link KeptAnswer.held}. */
export class KeptAnswer implements EntryKey, EntryMark {
  hash = 0;
  traits = 0;
  unit = -1;
  serial = 0;
  /** The memory in which the entry is: it is there for as long as its serial is in its head. */
  words: Int32Array = NO_WORDS;
  sections: EncodedSections;
  rcode = 0;
  /** RA and AD as they came, and {@link KEPT_COMPACT}. */
  flags = 0;
  /** Seconds that the answer was good for when it came. */
  ttl = 0;
  /** `Clock.now()`, milliseconds. */
  expiresAt = 0;
  /** It comes out of the cache for denials. */
  readonly denial: boolean;
  /** SERVFAIL or NOTIMP: kept for a moment to spare the upstream, never served once expired. */
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

  /** One that stays as it is, whatever becomes of the entry. */
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
