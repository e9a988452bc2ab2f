/**
 * Encoded answers of an authoritative source, kept until its data change: a repeated query costs a look-up instead of
 * a synthesis. This is not a DNS cache: entries do not expire. `clear` drops everything at once, `forget` the entries
 * that depend on one part of the data.
 *
 * Answers lie as octets in a ring of {@link MEMO_OCTETS}: new answers overwrite the oldest, whatever client they were
 * for. The memory is a `SharedArrayBuffer` although only one thread uses it: V8 counts other buffers as growth of the
 * heap, and would run a full collection after each reload.
 */
import { hashName } from "../../dns/name.ts";
import { FOLD } from "../../dns/octets.ts";
import type { Query } from "../query/query.ts";
import type { AnswerBasis, AnswerSource } from "../query/repetition.ts";
import { Reply } from "../query/reply.ts";
import { entryOctets, Head, Key, MESSAGE_OCTETS, NAME_START } from "./entry-layout.ts";
import { FramePool } from "./frames.ts";
import { lendSections } from "./lend-sections.ts";
import { writeMessage, writeTables } from "./write-sections.ts";

/** The largest size of one memo. Pages that were never written take no memory. */
export const MEMO_OCTETS: number = 4 * 1024 * 1024;
const WORDS = MEMO_OCTETS / 4;
/** Slots for queries. A client that queries many names only evicts other entries. */
const SLOTS = 16_384;
const TYPE_PRIME = 0x9e3779b1;
/** Scopes that are distinguished. Scopes that share a slot are dropped together. */
const SCOPES = 16_384;
const NO_SERIAL = -1;

/** Words of an entry's head whose meaning differs from the cache's. */
const Mark = {
  GENERATION: Head.EXPIRES,
  /** The scope that it depends on, and the number of its changes so far. */
  SCOPE: Head.LAST_HIT,
  CHANGES: Head.RETRY,
  /** The serial that it repeats, and 1 if it does. */
  ZONE_SERIAL: Head.NODE,
  HAS_SERIAL: Head.NEXT_OF_NODE,
} as const;

export class AnswerMemo implements AnswerSource {
  readonly #slots = new Float64Array(SLOTS);
  /** The number of changes in each scope. */
  readonly #changes = new Int32Array(SCOPES);
  readonly #frames = new FramePool();
  #words: Int32Array = NO_WORDS;
  #octets: Uint8Array = NO_OCTETS;
  /**
   * Words written so far, including those skipped at the end of the ring. A slot has the value before its entry, plus
   * 1.
   */
  #written = 0;
  #generation = 0;
  readonly #basis = new ScopeBasis(this, this.#changes);

  get epoch(): number {
    return this.#generation;
  }

  repeated(): void {
    // These answers are not counted.
  }

  /** Octets that entries have been written to. */
  get octets(): number {
    return 4 * Math.min(this.#written, WORDS);
  }

  /**
   * The answer given to this query since its data changed, as a new reply. Its octets are borrowed.
   * @param serial of the source's zones, if answers repeat it
   */
  find(query: Query, serial: number = NO_SERIAL): Reply | undefined {
    const slot = slotOf(query);
    const first = this.#headAt(slot);
    if (first >= 0 && this.#fits(first, query, serial)) return this.#revive(first, query);
    const second = this.#headAt(slot ^ 1);
    return second >= 0 && this.#fits(second, query, serial) ? this.#revive(second, query) : undefined;
  }

  /**
   * Keeps an answer that depends only on the question and the source's data.
   * @param scope the part of the data that it depends on: a number that the source chooses, for {@link forget}
   * @param serial of the zone, if the answer has its SOA record
   */
  remember(query: Query, reply: Reply, scope = 0, serial: number = NO_SERIAL): void {
    const sections = reply.encoded;
    const { end, count, runCount } = sections;
    const size = entryOctets({ end, records: count, runs: runCount, wildcard: 0 }) >> 2;
    const head = this.#claim(size);
    const slot = slotOf(query);
    const free = this.#isTrueAt(slot) && !this.#isTrueAt(slot ^ 1) ? slot ^ 1 : slot;
    this.#slots[free] = this.#written - size + 1;
    const words = this.#words;
    const place = scope & (SCOPES - 1);
    words[head + Head.KEY] = query.nameEnd | ((reply.rcode & Key.RCODE) << Key.RCODE_SHIFT);
    words[head + Head.FLAGS_RUNS] = reply.flags | (runCount << 16);
    words[head + Head.END_ADDITIONALS] = end | (sections.additionalCount << 16);
    words[head + Head.ANSWERS_AUTHORITIES] = sections.answerCount | (sections.authorityCount << 16);
    words[head + Head.HITS_TYPE] = sections.firstTypeOffset << 16;
    words[head + Mark.GENERATION] = this.#generation;
    words[head + Mark.SCOPE] = place;
    words[head + Mark.CHANGES] = this.#changes[place] ?? 0;
    words[head + Mark.ZONE_SERIAL] = serial;
    words[head + Mark.HAS_SERIAL] = serial === NO_SERIAL ? 0 : 1;
    writeMessage(this.#octets, 4 * head + MESSAGE_OCTETS, query, sections);
    if (count > 1) writeTables(words, head, sections);
  }

  /** Drops the entries that depend on a part of the data. */
  forget(scope: number): void {
    const place = scope & (SCOPES - 1);
    this.#changes[place] = (this.#changes[place] ?? 0) + 1;
  }

  /** Drops everything: the data changed. */
  clear(): void {
    this.#generation = (this.#generation + 1) | 0;
  }

  /**
   * Frees the memory, when no more look-ups will follow.
   * @param releasePages see `loadPageRelease`; without it, V8's next collection frees the memory
   */
  release(releasePages: ((octets: Uint8Array) => void) | undefined): void {
    if (this.#octets.length > 0) releasePages?.(this.#octets);
    this.#words = NO_WORDS;
    this.#octets = NO_OCTETS;
    this.#written = 0;
    this.#slots.fill(0);
  }

  /** Reserves a contiguous run of words. @returns its offset in the ring */
  #claim(size: number): number {
    if (this.#words.length === 0) {
      this.#words = new Int32Array(new SharedArrayBuffer(MEMO_OCTETS));
      this.#octets = new Uint8Array(this.#words.buffer);
    }
    const rest = WORDS - (this.#written % WORDS);
    if (rest < size) this.#written += rest;
    const head = this.#written % WORDS;
    this.#written += size;
    return head;
  }

  /** The offset of a slot's entry, -1 if it is empty or has been overwritten. */
  #headAt(slot: number): number {
    const before = (this.#slots[slot] as number) - 1;
    return before < 0 || this.#written > before + WORDS ? -1 : before % WORDS;
  }

  #isTrueAt(slot: number): boolean {
    const head = this.#headAt(slot);
    return head >= 0 && this.#isTrue(head);
  }

  #isTrue(head: number): boolean {
    const words = this.#words;
    if (words[head + Mark.GENERATION] !== this.#generation) return false;
    return words[head + Mark.CHANGES] === this.#changes[words[head + Mark.SCOPE] as number];
  }

  #fits(head: number, query: Query, serial: number): boolean {
    const words = this.#words;
    const { bytes, nameEnd } = query;
    if (((words[head + Head.KEY] as number) & Key.NAME_END) !== nameEnd || !this.#isTrue(head)) return false;
    if (words[head + Mark.HAS_SERIAL] === 1 && words[head + Mark.ZONE_SERIAL] !== (serial | 0)) return false;
    const octets = this.#octets;
    const fold = FOLD;
    const message = 4 * head + MESSAGE_OCTETS;
    for (let at = NAME_START; at < nameEnd; at++)
      if (fold[bytes[at] as number] !== octets[message + at]) return false;
    for (let at = nameEnd; at < nameEnd + 4; at++) if (bytes[at] !== octets[message + at]) return false;
    return true;
  }

  #revive(head: number, query: Query): Reply | undefined {
    const words = this.#words;
    const sections = lendSections(this.#frames, words, head, query.questionEnd);
    if (sections === undefined) return undefined;
    const rcode = ((words[head + Head.KEY] as number) >> Key.RCODE_SHIFT) & Key.RCODE;
    const flags = (words[head + Head.FLAGS_RUNS] as number) & 0xffff;
    const reply = Reply.fromEncoded(query, sections, rcode, flags);
    // Only the zone can tell whether its serial has changed.
    if (words[head + Mark.HAS_SERIAL] === 0) {
      const basis = this.#basis;
      basis.place = words[head + Mark.SCOPE] as number;
      basis.value = words[head + Mark.CHANGES] as number;
      reply.basis = basis;
    }
    return reply;
  }
}

/** An answer depends on the number of changes in its scope. */
class ScopeBasis implements AnswerBasis {
  readonly source: AnswerSource;
  readonly until = Number.POSITIVE_INFINITY;
  readonly numbers: Int32Array;
  place = 0;
  value = 0;

  constructor(source: AnswerSource, changes: Int32Array) {
    this.source = source;
    this.numbers = changes;
  }
}

const NO_WORDS = new Int32Array(0);
const NO_OCTETS = new Uint8Array(0);

function slotOf(query: Query): number {
  const hash = hashName(query.bytes, NAME_START, query.nameEnd) ^ Math.imul(query.type, TYPE_PRIME);
  // The low bits of the name hash vary least in its last step: fold the high ones in.
  return (hash ^ (hash >>> 15)) & (SLOTS - 1);
}
