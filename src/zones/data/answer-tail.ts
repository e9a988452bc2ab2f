/**
 * Records that end many answers of a zone, such as the NS records of its apex: octets written once, with the positions that depend
 * on their offset in the message.
 */
import { octetAt, readU16 } from "../../dns/octets.ts";
import { compressibleNames } from "./rdata-names.ts";

const POINTER = 0xc000;
const MAX_POINTER = 0x3fff;

export interface AnswerTail {
  readonly octets: Uint8Array;
  /** Offsets of records and their types, from the first octet. */
  readonly starts: Uint16Array;
  readonly types: Uint16Array;
  /** Pointers to the apex in the question's name: their positions, and their targets relative to the apex. */
  readonly toApex: Uint16Array;
  readonly apexOffsets: Uint16Array;
  /** Pointers into the tail itself: positions and targets. */
  readonly toTail: Uint16Array;
  readonly tailOffsets: Uint16Array;
}

export interface WrittenRecords {
  readonly bytes: Uint8Array;
  /** Of the tail's records, in the message. */
  readonly starts: Uint16Array;
  readonly types: Uint16Array;
  readonly end: number;
  /** Start of the apex in the question's name, and the name's end. */
  readonly apex: number;
  readonly nameEnd: number;
}

/** @returns `undefined` if the records point to something that other answers may lack */
export function tailOf({ bytes, starts, types, end, apex, nameEnd }: WrittenRecords): AnswerTail | undefined {
  const begin = starts[0];
  if (begin === undefined) return undefined;
  const pointers = { toApex: [], apexOffsets: [], toTail: [], tailOffsets: [] } as Record<
    "toApex" | "apexOffsets" | "toTail" | "tailOffsets",
    number[]
  >;
  /** Records the pointer of a name. @returns the end of the name, -1 for a pointer to another place */
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
 * @returns its end, -1 if it does not fit or is beyond the reach of pointers: nothing is written then
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
