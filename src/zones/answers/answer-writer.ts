/**
 * Writes the records of an answer from a zone's octets into a message, with name compression. One writer serves all queries: a
 * message is built in its buffer, and copied when it is complete.
 */
import { EncodedSections, type LentSections } from "../../dns/encoded-sections.ts";
import { hashName } from "../../dns/name.ts";
import { FOLD, octetAt, readU16, writeU16, writeU32 } from "../../dns/octets.ts";
import { RecordType } from "../../dns/type-names.ts";
import { FramePool } from "../../plugin/packed/frames.ts";
import { type AnswerTail, tailOf, writeTail } from "../data/answer-tail.ts";
import { compressibleNames, nameLength } from "../data/rdata-names.ts";
import type { ZoneRecords } from "../data/zone-records.ts";

export const Section = { ANSWER: 0, AUTHORITY: 1, ADDITIONAL: 2 } as const;
export type SectionNumber = (typeof Section)[keyof typeof Section];

const HEADER_OCTETS = 12;
const MAX_MESSAGE = 65_535;
const MAX_POINTER = 0x3fff;
/** Owner, type, class, TTL, length. */
const RECORD_ROOM = 255 + 10;
/** The smallest records, with a pointer as owner, fill a message. */
const MAX_RECORDS = 6_000;
/** Hash table of names in the message: a power of two. */
const SLOTS = 512;
const MAX_KNOWN = 256;
const SLAB_OCTETS = 64 * 1024;

/** Offset of the question's name. */
export const QUESTION_NAME = HEADER_OCTETS;

export class AnswerWriter {
  readonly #bytes = new Uint8Array(MAX_MESSAGE + RECORD_ROOM);
  readonly #recordStarts = new Uint16Array(MAX_RECORDS + 1);
  readonly #typeOffsets = new Uint16Array(MAX_RECORDS);
  readonly #counts: [number, number, number] = [0, 0, 0];
  readonly #slotHashes = new Int32Array(SLOTS);
  readonly #slotPlaces = new Uint16Array(SLOTS);
  readonly #slotStamps = new Uint32Array(SLOTS);
  readonly #labels = new Uint16Array(128);
  readonly #hashes = new Int32Array(128);
  readonly #owner = new Uint8Array(256);
  #isQuestionKnown = false;
  #stamp = 0;
  #known = 0;
  #offset = 0;
  #start = 0;
  #count = 0;
  #complete = true;
  #slab = new Uint8Array(SLAB_OCTETS);
  #slabUsed = 0;
  readonly #frames = new FramePool();

  /** Starts an answer to the question whose name is `query[12, nameEnd)`. */
  begin(query: Uint8Array, nameEnd: number): void {
    const bytes = this.#bytes;
    for (let at = HEADER_OCTETS; at < nameEnd; at++) bytes[at] = octetAt(query, at);
    this.#stamp++;
    this.#known = 0;
    this.#count = 0;
    this.#counts[0] = 0;
    this.#counts[1] = 0;
    this.#counts[2] = 0;
    this.#complete = true;
    this.#start = nameEnd + 4;
    this.#offset = this.#start;
    this.#isQuestionKnown = false;
  }

  /** Appends records that this zone has written before. @returns false if they do not fit */
  tail(section: SectionNumber, tail: AnswerTail, apexLength: number): boolean {
    const begin = this.#offset;
    const { starts, types } = tail;
    const count = this.#count;
    if (!this.#complete || count + starts.length > MAX_RECORDS) return false;
    const end = writeTail(tail, this.#bytes, begin, this.#start - 4 - apexLength);
    if (end < 0) return false;
    for (let index = 0; index < starts.length; index++) {
      this.#recordStarts[count + index] = begin + octetAt16(starts, index);
      this.#typeOffsets[count + index] = begin + octetAt16(types, index);
    }
    this.#count = count + starts.length;
    this.#counts[section] = (this.#counts[section] ?? 0) + starts.length;
    this.#offset = end;
    return true;
  }

  /** The records written after the first `first`, for reuse in other answers. */
  tailFrom(first: number, apexLength: number): AnswerTail | undefined {
    if (!this.#complete) return undefined;
    const nameEnd = this.#start - 4;
    return tailOf({
      bytes: this.#bytes,
      starts: this.#recordStarts.slice(first, this.#count),
      types: this.#typeOffsets.slice(first, this.#count),
      end: this.#offset,
      apex: nameEnd - apexLength,
      nameEnd,
    });
  }

  get count(): number {
    return this.#count;
  }

  /** Adds the question's names as pointer targets, when the first record is written. */
  #knowQuestion(): void {
    this.#isQuestionKnown = true;
    const labels = this.#measure(this.#bytes, HEADER_OCTETS);
    for (let index = 0; index < labels; index++) this.#remember(index, HEADER_OCTETS);
  }

  /** False once a record did not fit into 65,535 octets. */
  get isComplete(): boolean {
    return this.#complete;
  }

  get answerCount(): number {
    return this.#counts[0];
  }

  /** The octets of the message so far, for callers that continue from a written name. */
  get bytes(): Uint8Array {
    return this.#bytes;
  }

  /**
   * Writes an RRset.
   * @param owner offset of the owner in `ownerBytes`, uncompressed
   * @param ttl seconds
   */
  rrset(
    section: SectionNumber,
    records: ZoneRecords,
    rrset: number,
    ownerBytes: Uint8Array,
    owner: number,
    ttl: number,
  ): void {
    const type = records.type(rrset);
    const { bytes: heap } = records.heap;
    let at = records.data(rrset);
    let pointer = ownerBytes === this.#bytes && owner === QUESTION_NAME ? QUESTION_NAME : -1;
    for (let left = records.count(rrset); left > 0; left--) {
      const length = readU16(heap, at);
      const start = this.#offset;
      const next = this.#record(type, ttl, pointer, ownerBytes, owner, heap, at + 2, length);
      if (next < -1) return;
      pointer = next;
      this.#close(section, start);
      at += 2 + length;
    }
  }

  /** Writes an RRset whose owner is a node of the zone. */
  rrsetOfNode(section: SectionNumber, records: ZoneRecords, node: number, rrset: number, ttl: number): void {
    this.nodeName(records, node);
    this.rrset(section, records, rrset, this.#owner, 0, ttl);
  }

  /** The uncompressed name of a node, valid until the next call. */
  nodeName(records: ZoneRecords, node: number): Uint8Array {
    const end = records.names.writeLabels(node, this.#owner, 0);
    this.#owner.set(records.apex.wire, end);
    return this.#owner;
  }

  /** Writes a CNAME that no zone contains (RFC 6672 section 3.1). */
  alias(ownerBytes: Uint8Array, owner: number, ttl: number, target: Uint8Array): void {
    const start = this.#offset;
    const pointer = ownerBytes === this.#bytes && owner === QUESTION_NAME ? QUESTION_NAME : -1;
    const written = this.#record(
      RecordType.CNAME,
      ttl,
      pointer,
      ownerBytes,
      owner,
      target,
      0,
      nameLength(target, 0),
    );
    if (written >= -1) this.#close(Section.ANSWER, start);
  }

  /** Offset where this name was written in full or as the suffix of another, -1 if it was not. */
  place(bytes: Uint8Array, at: number): number {
    if (!this.#isQuestionKnown) this.#knowQuestion();
    if (this.#measure(bytes, at) === 0) return -1;
    return this.#find(0, bytes, at);
  }

  /** Like {@link finish}, for a reply that returns its lent octets once it is sent, which saves the allocations. */
  lend(): EncodedSections {
    const end = this.#offset;
    const count = this.#count;
    const { sections } = this.#frames.take(end, count);
    const { bytes, recordStarts, typeOffsets } = sections;
    const from = this.#bytes;
    if (end > 512) bytes.set(from.subarray(0, end));
    else for (let at = HEADER_OCTETS; at < end; at++) bytes[at] = octetAt(from, at);
    for (let record = 0; record < count; record++) {
      recordStarts[record] = octetAt16(this.#recordStarts, record);
      typeOffsets[record] = octetAt16(this.#typeOffsets, record);
    }
    recordStarts[count] = end;
    const lent = sections as LentSections;
    lent.start = this.#start;
    lent.end = end;
    lent.answerCount = this.#counts[0];
    lent.authorityCount = this.#counts[1];
    lent.additionalCount = this.#counts[2];
    lent.firstTypeOffset = count === 0 ? 0 : octetAt16(typeOffsets, 0);
    sections.lendRuns(undefined, 0);
    return sections;
  }

  finish(): EncodedSections {
    const end = this.#offset;
    const count = this.#count;
    this.#recordStarts[count] = end;
    const bytes = this.#copy(end);
    const counts: [number, number, number] = [this.#counts[0], this.#counts[1], this.#counts[2]];
    return EncodedSections.assembled(
      bytes,
      this.#start,
      counts,
      this.#recordStarts.slice(0, count + 1),
      this.#typeOffsets.slice(0, count),
    );
  }

  /** Slices of a larger buffer, because a separate allocation for each answer costs more than the answer. */
  #copy(end: number): Uint8Array {
    if (end > SLAB_OCTETS / 8) return this.#bytes.slice(0, end);
    if (this.#slabUsed + end > SLAB_OCTETS) {
      this.#slab = new Uint8Array(SLAB_OCTETS);
      this.#slabUsed = 0;
    }
    const copy = this.#slab.subarray(this.#slabUsed, this.#slabUsed + end);
    this.#slabUsed += end;
    const bytes = this.#bytes;
    if (end - this.#start > 256) copy.set(bytes.subarray(0, end));
    else for (let at = HEADER_OCTETS; at < end; at++) copy[at] = octetAt(bytes, at);
    return copy;
  }

  #close(section: SectionNumber, start: number): void {
    this.#recordStarts[this.#count++] = start;
    this.#counts[section] = (this.#counts[section] ?? 0) + 1;
  }

  /** @returns offset of the owner as a pointer target, -1 beyond a pointer's reach, FULL if the record does not fit */
  #record(
    type: number,
    ttl: number,
    pointer: number,
    ownerBytes: Uint8Array,
    owner: number,
    rdata: Uint8Array,
    rdataAt: number,
    length: number,
  ): number {
    const bytes = this.#bytes;
    // Compressed records are smaller; one that would not fit uncompressed counts as one that does not.
    if (this.#offset + length + RECORD_ROOM > MAX_MESSAGE || this.#count >= MAX_RECORDS || !this.#complete) {
      this.#complete = false;
      return FULL;
    }
    let place = pointer;
    if (pointer >= 0) {
      writeU16(bytes, this.#offset, 0xc000 | pointer);
      this.#offset += 2;
    } else place = this.#name(ownerBytes, owner);
    const at = this.#offset;
    this.#typeOffsets[this.#count] = at;
    bytes[at] = type >>> 8;
    bytes[at + 1] = type;
    bytes[at + 2] = 0;
    bytes[at + 3] = 1;
    writeU32(bytes, at + 4, ttl);
    this.#offset = at + 10;
    const names = compressibleNames(type);
    if (names === undefined) this.#octets(rdata, rdataAt, length);
    else {
      this.#octets(rdata, rdataAt, names.offset);
      let from = rdataAt + names.offset;
      for (let left = names.count; left > 0; left--) {
        const end = from + nameLength(rdata, from);
        this.#name(rdata, from);
        from = end;
      }
      this.#octets(rdata, from, rdataAt + length - from);
    }
    writeU16(bytes, at + 8, this.#offset - at - 10);
    return place;
  }

  #octets(from: Uint8Array, at: number, length: number): void {
    const bytes = this.#bytes;
    const to = this.#offset;
    if (length > 64) bytes.set(from.subarray(at, at + length), to);
    else for (let index = 0; index < length; index++) bytes[to + index] = octetAt(from, at + index);
    this.#offset = to + length;
  }

  /** Writes a name, with a pointer for a suffix that the message already has. Returns a pointer target, or -1. */
  #name(source: Uint8Array, at: number): number {
    if (!this.#isQuestionKnown) this.#knowQuestion();
    const bytes = this.#bytes;
    const labels = this.#measure(source, at);
    const start = this.#offset;
    for (let index = 0; index < labels; index++) {
      const known = this.#find(index, source, at);
      if (known >= 0) {
        this.#octets(source, at, octetAt16(this.#labels, index));
        for (let fresh = 0; fresh < index; fresh++) this.#remember(fresh, start);
        writeU16(bytes, this.#offset, 0xc000 | known);
        this.#offset += 2;
        return index === 0 ? known : start <= MAX_POINTER ? start : -1;
      }
    }
    this.#octets(source, at, octetAt16(this.#labels, labels) + 1);
    for (let fresh = 0; fresh < labels; fresh++) this.#remember(fresh, start);
    return start <= MAX_POINTER ? start : -1;
  }

  /** Records the start of each label, relative to the name's start, and the hash of each suffix. */
  #measure(source: Uint8Array, at: number): number {
    let count = 0;
    let end = at;
    while (octetAt(source, end) !== 0) {
      this.#labels[count++] = end - at;
      end += octetAt(source, end) + 1;
    }
    this.#labels[count] = end - at;
    let hash = HASH_BASIS;
    for (let index = count - 1, to = end - 1; index >= 0; index--) {
      for (const from = at + octetAt16(this.#labels, index); to >= from; to--) {
        hash = Math.imul(hash ^ octetAt(FOLD, octetAt(source, to)), HASH_PRIME);
      }
      this.#hashes[index] = hash;
    }
    return count;
  }

  #find(index: number, source: Uint8Array, at: number): number {
    const hash = this.#hashes[index] as number;
    for (let slot = slotOf(hash); this.#slotStamps[slot] === this.#stamp; slot = (slot + 1) & (SLOTS - 1)) {
      if (this.#slotHashes[slot] !== hash) continue;
      const place = this.#slotPlaces[slot] as number;
      if (this.#standsAt(place, source, at + octetAt16(this.#labels, index))) return place;
    }
    return -1;
  }

  #remember(index: number, start: number): void {
    const place = start + octetAt16(this.#labels, index);
    if (place > MAX_POINTER || this.#known >= MAX_KNOWN) return;
    this.#known++;
    const hash = this.#hashes[index] as number;
    let slot = slotOf(hash);
    while (this.#slotStamps[slot] === this.#stamp) slot = (slot + 1) & (SLOTS - 1);
    this.#slotStamps[slot] = this.#stamp;
    this.#slotHashes[slot] = hash;
    this.#slotPlaces[slot] = place;
  }

  #standsAt(place: number, source: Uint8Array, from: number): boolean {
    const bytes = this.#bytes;
    let at = place;
    for (let index = from; ; ) {
      let length = octetAt(bytes, at);
      while (length >= 0xc0) {
        at = readU16(bytes, at) & MAX_POINTER;
        length = octetAt(bytes, at);
      }
      if (length !== octetAt(source, index)) return false;
      if (length === 0) return true;
      for (let k = 1; k <= length; k++) {
        if (octetAt(FOLD, octetAt(bytes, at + k)) !== octetAt(FOLD, octetAt(source, index + k))) return false;
      }
      at += length + 1;
      index += length + 1;
    }
  }
}

const FULL = -2;
const HASH_BASIS = hashName(new Uint8Array(1), 0, 1);
const HASH_PRIME = 0x01000193;

function slotOf(hash: number): number {
  return (hash ^ (hash >>> 15)) & (SLOTS - 1);
}

function octetAt16(array: Uint16Array, index: number): number {
  return array[index] as number;
}
