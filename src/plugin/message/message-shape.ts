/** Finds the parts of a query without making an object. */
import { decodeClientSubnet, EdnsOptionCode, OPT_FIXED_OCTETS } from "../../dns/edns.ts";
import { decodeMessage } from "../../dns/message.ts";
import { octetAt, readU16, readU32, writeU16 } from "../../dns/octets.ts";
import { RecordType } from "../../dns/type-names.ts";
import { WireError, WireReader } from "../../dns/wire-reader.ts";

/**
 * The end of the question's name, whether the message ends with TSIG, and the offset of OPT, packed into one number,
 * because every query would otherwise cost another object. Read it with {@link nameEndOf}, {@link isSigned} and
 * {@link optOffsetOf}.
 */
export type MessageShape = number;

/** A name ends at octet 267 at the latest. */
const NAME_END_BITS = 9;
const SIGNED = 1 << NAME_END_BITS;
const OPT_SHIFT = NAME_END_BITS + 1;

/** End of the question's name, root octet included; it begins at octet 12. */
export function nameEndOf(shape: MessageShape): number {
  return shape & (SIGNED - 1);
}

/** Whether the last record is TSIG (RFC 8945 section 5.1). */
export function isSigned(shape: MessageShape): boolean {
  return (shape & SIGNED) !== 0;
}

/** Offset of OPT's type, -1 without OPT. */
export function optOffsetOf(shape: MessageShape): number {
  return (shape >>> OPT_SHIFT) - 1;
}

/** The shape of a message that was parsed, or derived from a parsed one. */
export function shapeOf(nameEnd: number, optOffset: number, signed = false): MessageShape {
  return ((optOffset + 1) << OPT_SHIFT) | (signed ? SIGNED : 0) | nameEnd;
}

/**
 * Finds question, OPT and TSIG, and checks that the rest of the message parses.
 * @returns `undefined` for a malformed message
 */
export function readShape(bytes: Uint8Array, length: number): MessageShape | undefined {
  let at = 12;
  for (;;) {
    if (at >= length) return undefined;
    const octet = octetAt(bytes, at);
    if (octet === 0) break;
    if (octet > 63) return undefined;
    at += octet + 1;
  }
  const nameEnd = at + 1;
  const questionEnd = nameEnd + 4;
  if (nameEnd - 12 > 255 || questionEnd > length) return undefined;
  if (length === questionEnd) return countsAfterQuestion(bytes) === 0 ? shapeOf(nameEnd, -1) : undefined;
  // The usual query has only OPT behind its question, and needs no reader.
  if (
    readU32(bytes, 6) === 0 &&
    readU16(bytes, 10) === 1 &&
    length >= questionEnd + OPT_FIXED_OCTETS &&
    octetAt(bytes, questionEnd) === 0 &&
    readU16(bytes, questionEnd + 1) === RecordType.OPT &&
    questionEnd + OPT_FIXED_OCTETS + readU16(bytes, questionEnd + 9) === length &&
    optionsFit(bytes, questionEnd + OPT_FIXED_OCTETS, length)
  ) {
    return shapeOf(nameEnd, questionEnd + 1);
  }
  return readUnusualShape(bytes, length, nameEnd);
}

function countsAfterQuestion(bytes: Uint8Array): number {
  return readU16(bytes, 6) + readU16(bytes, 8) + readU16(bytes, 10);
}

function optionsFit(bytes: Uint8Array, start: number, end: number): boolean {
  let at = start;
  while (at + 4 <= end) at += 4 + readU16(bytes, at + 2);
  return at === end;
}

/**
 * Whether every client subnet among the options is well formed. A server answers FORMERR to any other (RFC 7871
 * section 6). If an upstream did that, clients that wait for the same answer would get FORMERR, too.
 * @param optOffset as of {@link optOffsetOf}
 */
export function hasSoundSubnets(bytes: Uint8Array, optOffset: number): boolean {
  if (optOffset < 0) return true;
  const start = optOffset - 1 + OPT_FIXED_OCTETS;
  const end = start + readU16(bytes, start - 2);
  for (let at = start; at < end; at += 4 + readU16(bytes, at + 2)) {
    if (readU16(bytes, at) !== EdnsOptionCode.CLIENT_SUBNET) continue;
    const data = bytes.subarray(at + 4, at + 4 + readU16(bytes, at + 2));
    if (decodeClientSubnet(data) === undefined) return false;
  }
  return true;
}

function readUnusualShape(bytes: Uint8Array, length: number, nameEnd: number): MessageShape | undefined {
  try {
    decodeMessage(bytes.subarray(0, length));
    const reader = new WireReader(bytes, nameEnd + 4, length);
    let optOffset = -1;
    let signed = false;
    const additional = readU16(bytes, 10);
    for (let count = countsAfterQuestion(bytes); count > 0; count--) {
      reader.skipName();
      const type = readU16(bytes, reader.offset);
      if (type === RecordType.OPT) optOffset = reader.offset;
      // TSIG must be the last record of the additional section (RFC 8945 section 5.1).
      if (type === RecordType.TSIG) {
        if (count !== 1 || additional === 0) return undefined;
        signed = true;
      }
      reader.skip(8);
      reader.skip(reader.u16());
    }
    return shapeOf(nameEnd, optOffset, signed);
  } catch (error) {
    if (error instanceof WireError) return undefined;
    throw error;
  }
}

/**
 * The offset of the last record's owner name: TSIG's in a signed message.
 * @param nameEnd as of {@link nameEndOf}, of a message that {@link readShape} accepted
 */
export function lastRecordOffset(bytes: Uint8Array, length: number, nameEnd: number): number {
  const reader = new WireReader(bytes, nameEnd + 4, length);
  let last = reader.offset;
  for (let count = countsAfterQuestion(bytes); count > 0; count--) {
    last = reader.offset;
    reader.skipName();
    reader.skip(8);
    reader.skip(reader.u16());
  }
  return last;
}

export interface MendedMessage {
  /** The new length in octets; the rest is to be dropped. */
  readonly length: number;
  /** There was a second OPT record: only the question is left, and the reply is FORMERR (RFC 6891 section 6.1.1). */
  readonly hadSecondOpt: boolean;
}

/**
 * Corrects the counts of a query with octets behind its last record, or with fewer records than its header claims:
 * most servers tolerate both.
 * @returns `undefined` if it is malformed in another way, or signed, as a change breaks the signature
 */
export function mendMessage(bytes: Uint8Array, length: number): MendedMessage | undefined {
  const counts: [number, number, number] = [0, 0, 0];
  let opts = 0;
  try {
    const reader = new WireReader(bytes, 12, length);
    reader.checkName(false);
    reader.skip(4);
    const questionEnd = reader.offset;
    for (const section of [0, 1, 2] as const) {
      const claimed = readU16(bytes, 6 + 2 * section);
      for (; counts[section] < claimed && reader.remaining > 0; counts[section]++) {
        reader.skipName();
        const type = reader.u16();
        if (type === RecordType.TSIG) return undefined;
        if (type === RecordType.OPT && section === 2) opts++;
        reader.skip(6);
        reader.skip(reader.u16());
      }
    }
    const hadSecondOpt = opts > 1;
    for (const section of [0, 1, 2] as const)
      writeU16(bytes, 6 + 2 * section, hadSecondOpt ? 0 : counts[section]);
    return { length: hadSecondOpt ? questionEnd : reader.offset, hadSecondOpt };
  } catch (error) {
    if (error instanceof WireError) return undefined;
    throw error;
  }
}
