/**
 * The names that an answer depends on besides the question's: the aliases on the way to its records, the target of
 * the last one, and the names whose addresses are in the additional section. Only names count whose data change
 * without a reload. They are stored in one buffer, so reading them allocates nothing.
 */
import type { EncodedSections } from "../../dns/encoded-sections.ts";
import { FOLD, readU16 } from "../../dns/octets.ts";
import { RecordType } from "../../dns/type-names.ts";
import { MAX_POINTERS } from "../../dns/wire-reader.ts";
import type { ChangingNames, ChangingZone } from "../../plugin/contract/changing-names.ts";
import type { Asked } from "../../plugin/message/asked.ts";
import { NAME_START } from "../../plugin/packed/entry-layout.ts";

/** No chain of aliases is this long. An answer with more names is not cached. */
export const MOST_MENTIONED = 16;
const MAX_NAME_OCTETS = 255;
/** Type, class, TTL and length stand between owner and RDATA. */
const RDATA_OFFSET = 10;
const POINTER = 0xc000;
const POINTER_TO_QUESTION = 0xc00c;

export class MentionedNames {
  /** The names in wire form and lower case. */
  readonly octets = new Uint8Array(MOST_MENTIONED * (MAX_NAME_OCTETS + 1));
  /** The start of each name, and the end of the last. */
  readonly starts = new Uint16Array(MOST_MENTIONED + 2);
  count = 0;
  readonly #changing: ChangingNames;
  readonly #question = new Uint8Array(MAX_NAME_OCTETS + 1);

  constructor(changing: ChangingNames) {
    this.#changing = changing;
  }

  /** Finds the names of an answer. They hold until the next call. @returns false if there are too many */
  read(sections: EncodedSections, asked: Asked): boolean {
    this.count = 0;
    if (this.#changing.isEmpty) return true;
    const { bytes, end, answerCount, authorityCount, count, recordStarts, typeOffsets } = sections;
    // The records of a set mostly point to the same owner.
    let known = POINTER_TO_QUESTION;
    for (let index = 0; index < answerCount; index++) {
      const typeAt = typeOffsets[index] as number;
      const owner = recordStarts[index] as number;
      const pointer = readU16(bytes, owner);
      if (pointer !== known && !this.#add(bytes, owner, end, asked)) return false;
      if (pointer >= POINTER) known = pointer;
      if (readU16(bytes, typeAt) !== RecordType.CNAME) continue;
      if (!this.#add(bytes, typeAt + RDATA_OFFSET, end, asked)) return false;
    }
    const first = answerCount + authorityCount;
    if (first === count) return true;
    const zone = this.#zoneOfQuestion(asked);
    for (let index = first; index < count; index++) {
      const type = readU16(bytes, typeOffsets[index] as number);
      if (type !== RecordType.A && type !== RecordType.AAAA) continue;
      if (!this.#add(bytes, recordStarts[index] as number, end, asked, zone)) return false;
    }
    return true;
  }

  #isBelowQuestion(start: number, end: number, { nameEnd }: Asked): boolean {
    return isSuffix(this.octets, start, end, this.#question, 0, nameEnd - NAME_START);
  }

  #zoneOfQuestion({ bytes, nameEnd }: Asked): ChangingZone | undefined {
    const question = this.#question;
    for (let at = NAME_START; at < nameEnd; at++)
      question[at - NAME_START] = FOLD[bytes[at] as number] as number;
    return this.#changing.zoneOf(question, 0, nameEnd - NAME_START);
  }

  /**
   * Adds a name unless it does not change, stands there already, or is told of together with the question.
   * @param beside for the owner of an address beside the answer, the zone of the question
   * @returns false where there is no room
   */
  #add(bytes: Uint8Array, at: number, end: number, asked: Asked, beside?: ChangingZone): boolean {
    const start = this.starts[this.count] as number;
    const next = unpackName(bytes, at, end, this.octets, start);
    if (next < 0 || isSuffix(asked.bytes, NAME_START, asked.nameEnd, this.octets, start, next)) return true;
    const zone = this.#changing.zoneOf(this.octets, start, next);
    if (zone === undefined) return true;
    // A Service has the addresses of its pods beside its SRV records, thousands of them.
    if (beside === zone && (zone.tellsOfAdditions || this.#isBelowQuestion(start, next, asked))) return true;
    for (let index = 0; index < this.count; index++) {
      const other = this.starts[index] as number;
      const otherEnd = this.starts[index + 1] as number;
      if (
        otherEnd - other === next - start &&
        isSuffix(this.octets, other, otherEnd, this.octets, start, next)
      )
        return true;
    }
    if (this.count === MOST_MENTIONED - 1) return false;
    this.starts[++this.count] = next;
    return true;
  }
}

/** Copies a name in lower case and with its pointers followed. @returns its end there, or -1 for an invalid name */
function unpackName(bytes: Uint8Array, from: number, end: number, into: Uint8Array, start: number): number {
  let at = from;
  let to = start;
  for (let pointers = 0; pointers <= MAX_POINTERS && at < end; ) {
    const length = bytes[at] as number;
    if (length >= 0xc0) {
      at = readU16(bytes, at) & 0x3fff;
      pointers++;
      continue;
    }
    if (length > 63 || at + length >= end || to + length + 1 - start > MAX_NAME_OCTETS) return -1;
    into[to++] = length;
    for (const stop = ++at + length; at < stop; at++) into[to++] = FOLD[bytes[at] as number] as number;
    if (length === 0) return to;
  }
  return -1;
}

/** Whether a name equals `suffix`, which is in lower case, or lies below it. */
function isSuffix(
  bytes: Uint8Array,
  start: number,
  end: number,
  other: Uint8Array,
  otherStart: number,
  otherEnd: number,
): boolean {
  const tail = end - (otherEnd - otherStart);
  let at = start;
  while (at < tail) at += (bytes[at] as number) + 1;
  if (at !== tail) return false;
  for (let index = otherStart; index < otherEnd; index++, at++)
    if (FOLD[bytes[at] as number] !== other[index]) return false;
  return true;
}
