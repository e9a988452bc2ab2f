/**
 * Records that end many answers of a zone, such as the NS records of its apex: octets that were written once, with the places in them that
 * depend on where in the message they stand.
 */
import { octetAt, readU16 } from "../../dns/octets.ts";
import { compressibleNames } from "./rdata-names.ts";

const POINTER = 0xc000;
const MAX_POINTER = 0x3fff;

export interface AnswerTail {
  readonly octets: Uint8Array;
  /** Where records and their types begin, counted from the first octet. */
  readonly starts: Uint16Array;
  readonly types: Uint16Array;
  /** Where pointers to the apex at the end of the question's name stand, and how far behind its beginning each leads. */
  readonly toApex: Uint16Array;
  readonly apexOffsets: Uint16Array;
  /** Where pointers into the tail itself stand, and where they lead. */
  readonly toTail: Uint16Array;
  readonly tailOffsets: Uint16Array;
}

export interface WrittenRecords {
  readonly bytes: Uint8Array;
  /** Of the tail's records, in the message. */
  readonly starts: Uint16Array;
  readonly types: Uint16Array;
  readonly end: number;
  /** Where the apex begins in the question's name, and where that ends. */
  readonly apex: number;
  readonly nameEnd: number;
}

/** @returns `undefined` where the records point to something that other answers may not have */
export function tailOf({ bytes, starts, types, end, apex, nameEnd }: WrittenRecords): AnswerTail | undefined {
  const begin = starts[0];
  if (begin === undefined) return undefined;
  const pointers = { toApex: [], apexOffsets: [], toTail: [], tailOffsets: [] } as Record<
    "toApex" | "apexOffsets" | "toTail" | "tailOffsets",
    number[]
  >;
  /** Notes the pointer of a name. @returns the end of the name, -1 for a pointer that leads elsewhere */
  const note = (from: number): number => {
    let at = from;
    while (octetAt(bytes, at) !== 0 && octetAt(bytes, at) < 0xc0) at += octetAt(bytes, at) + 1;
    if (octetAt(bytes, at) === 0) return at + 1;
    const target = readU16(bytes, at) & MAX_POINTER;
    if (target >= apex && target < nameEnd) {
      pointers.toApex.push(at - begin);
      pointers.apexOffsets.push(target - apex);
    } else if (target >= begin) {
      pointers.toTail.push(at - begin);
      pointers.tailOffsets.push(target - begin);
    } else return -1;
    return at + 2;
  };
  for (const [index, start] of starts.entries()) {
    const typeAt = note(start);
    if (typeAt < 0) return undefined;
    const names = compressibleNames(readU16(bytes, typeAt));
    let at = typeAt + 10 + (names?.offset ?? 0);
    for (let left = names?.count ?? 0; left > 0; left--) {
      at = note(at);
      if (at < 0) return undefined;
    }
    if (types[index] !== typeAt) return undefined;
  }
  return {
    octets: bytes.slice(begin, end),
    starts: starts.map((at) => at - begin),
    types: types.map((at) => at - begin),
    toApex: Uint16Array.from(pointers.toApex),
    apexOffsets: Uint16Array.from(pointers.apexOffsets),
    toTail: Uint16Array.from(pointers.toTail),
    tailOffsets: Uint16Array.from(pointers.tailOffsets),
  };
}

/**
 * Writes a tail into a message.
 * @returns where it ends, -1 where it does not fit or lies out of the reach of pointers: nothing is written then
 */
export function writeTail(tail: AnswerTail, bytes: Uint8Array, begin: number, apex: number): number {
  const { octets, toApex, apexOffsets, toTail, tailOffsets } = tail;
  const end = begin + octets.length;
  if (end > MAX_POINTER) return -1;
  if (octets.length > 64) bytes.set(octets, begin);
  else for (let at = 0; at < octets.length; at++) bytes[begin + at] = octetAt(octets, at);
  for (let index = 0; index < toApex.length; index++) {
    const target = POINTER | (apex + (apexOffsets[index] as number));
    const at = begin + (toApex[index] as number);
    bytes[at] = target >>> 8;
    bytes[at + 1] = target;
  }
  for (let index = 0; index < toTail.length; index++) {
    const target = POINTER | (begin + (tailOffsets[index] as number));
    const at = begin + (toTail[index] as number);
    bytes[at] = target >>> 8;
    bytes[at + 1] = target;
  }
  return end;
}
