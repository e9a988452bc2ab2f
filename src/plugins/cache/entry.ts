/** One answer in the cache. */
import type { EncodedSections } from "../../dns/encoded-sections.ts";
import type { Name } from "../../dns/name.ts";
import { Flag } from "../../dns/numbers.ts";
import { FOLD } from "../../dns/octets.ts";
import type { Query } from "../../plugin/query.ts";
import type { Reply } from "../../plugin/reply.ts";
import { compactSections } from "./compact-sections.ts";
import type { Verdict } from "./verdict.ts";

/** Where in the table the answer to a query stands. */
export interface EntryKey {
  readonly hash: number;
  /** See `answerTraits`. */
  readonly traits: number;
}

export class CacheEntry {
  readonly hash: number;
  readonly traits: number;
  /** In lower case. */
  readonly name: Name;
  /**
   * A message with the question of this name: mostly the answer itself, whose octets are needed next. Each step to other memory is a wait
   * for it when there are many entries.
   */
  readonly #message: Uint8Array;
  /** Where the name ends in a message. */
  readonly #nameEnd: number;
  readonly type: number;
  readonly class: number;

  readonly encoded: EncodedSections;
  readonly rcode: number;
  /** RA and AD as they came. */
  readonly flags: number;
  /** Seconds that the answer was good for when it came. */
  readonly ttl: number;
  /** `Clock.now()`, milliseconds. */
  readonly expiresAt: number;
  /** True for what the denial cache holds. */
  readonly denial: boolean;
  /** SERVFAIL or NOTIMP: kept for a moment to spare the upstream, never served once expired. */
  readonly error: boolean;
  /** NOERROR with records of the type that was asked for. */
  readonly answers: boolean;
  /** The metadata `zone/wildcard` that came with the answer. */
  readonly wildcard: string | undefined;

  /** Hits in close succession, for prefetch. */
  hits = 0;
  lastHitAt = 0;
  /** Whether a background refresh is under way. */
  refreshing = false;
  /** `Clock.now()` before which no refresh is tried, after one that failed. */
  retryAt = 0;

  /** The table's own: its place among all entries, and the next one of its bucket. */
  index = -1;
  next: CacheEntry | undefined = undefined;

  constructor(key: EntryKey, asked: Query, reply: Reply, verdict: Verdict, now: number) {
    this.hash = key.hash;
    this.traits = key.traits;
    this.name = asked.name.toLowerCase();
    this.type = asked.type;
    this.class = asked.class;
    this.encoded = compactSections(reply.encoded, asked.question);
    const { folded } = this.name;
    this.#nameEnd = NAME_START + folded.length;
    this.#message = hasNameOf(this.encoded.bytes, asked) ? this.encoded.bytes : messageWith(folded);
    this.rcode = reply.rcode;
    this.flags = reply.flags & (Flag.RA | Flag.AD);
    this.ttl = verdict.ttl;
    this.expiresAt = now + verdict.ttl * 1000;
    this.denial = verdict.denial;
    this.error = verdict.type === "SERVERERROR";
    this.answers = verdict.answers;
    this.wildcard = asked.metadataValue(WILDCARD_LABEL);
  }

  /** Whether this answers that query. */
  matches(query: Query, traits: number): boolean {
    if (this.traits !== traits || this.type !== query.type || this.class !== query.class) return false;
    return this.#nameEnd === query.nameEnd && hasNameOf(this.#message, query);
  }

  /** Whole seconds until it expires, 0 afterwards. */
  remainingTtl(now: number): number {
    const seconds = Math.ceil((this.expiresAt - now) / 1000);
    return seconds > this.ttl ? this.ttl : seconds < 0 ? 0 : seconds;
  }

  /** Octets of name, records and their offsets: what may be large of an entry. */
  get octets(): number {
    const { bytes, recordStarts, typeOffsets } = this.encoded;
    return this.#nameEnd + bytes.length + recordStarts.byteLength + typeOffsets.byteLength;
  }

  /** Takes over what is known of how often the answer is asked for. */
  inheritHits(from: CacheEntry): void {
    this.hits = from.hits;
    this.lastHitAt = from.lastHitAt;
  }
}

export const WILDCARD_LABEL = "zone/wildcard";

/** The name of the question stands behind the header. */
const NAME_START = 12;

/** Whether the message is as long as that, and has this name where the name of its question stands. */
function hasNameOf(message: Uint8Array, query: Query): boolean {
  const { bytes, nameEnd } = query;
  if (message.length < nameEnd) return false;
  const fold = FOLD;
  for (let at = NAME_START; at < nameEnd; at++) {
    const octet = bytes[at] ?? 0;
    const other = message[at] ?? 0;
    if (octet !== other && fold[octet] !== fold[other]) return false;
  }
  return true;
}

function messageWith(folded: Uint8Array): Uint8Array {
  const message = new Uint8Array(NAME_START + folded.length);
  message.set(folded, NAME_START);
  return message;
}
