/** Finds the records of an ordinary reply in its octets, without making objects. */
import type { EncodedSections, LentSections } from "./encoded-sections.ts";
import { MAX_LABEL_OCTETS, MAX_NAME_OCTETS } from "./name.ts";
import { octetAt, readU16 } from "./octets.ts";
import { RecordType } from "./type-names.ts";
import { FIRST_NAME_OFFSET, MAX_POINTERS, MAX_UNPACKED_OCTETS } from "./wire-reader.ts";

/** With this many, owners cannot unpack to more than `EncodedSections.scan` accepts. Messages with more are left to it. */
const MAX_USUAL_RECORDS = Math.floor(MAX_UNPACKED_OCTETS / MAX_NAME_OCTETS);

/** In place of an offset: the full parser must decide. */
export const UNUSUAL = -2;

/**
 * Finds the records of the message in `sections.bytes`, and stores their offsets in `sections`. Accepts messages that
 * `EncodedSections.scan` accepts as regular, with OPT at the end or absent. Lengths, counts and owners are checked, RDATA is not.
 * @param sections as made by `EncodedSections.forLending`; undefined if the message is {@link UNUSUAL}
 * @param start end of the question, of which there is one and which is valid
 * @returns offset of OPT's type, -1 without OPT, else {@link UNUSUAL}
 */
export function findSections(sections: EncodedSections, length: number, start: number): number {
  const { bytes, recordStarts, typeOffsets } = sections;
  const answers = readU16(bytes, 6);
  const authorities = readU16(bytes, 8);
  const total = answers + authorities + readU16(bytes, 10);
  if (total > typeOffsets.length || total > MAX_USUAL_RECORDS) return UNUSUAL;
  let at = start;
  let optOffset = -1;
  for (let index = 0; index < total; index++) {
    const typeAt = endOfName(bytes, at, length);
    if (typeAt < 0 || typeAt + 10 > length) return UNUSUAL;
    recordStarts[index] = at;
    typeOffsets[index] = typeAt;
    if (readU16(bytes, typeAt) === RecordType.OPT) {
      // In any other place, or with any other owner, it is misplaced.
      if (index !== total - 1 || index < answers + authorities || typeAt !== at + 1) return UNUSUAL;
      optOffset = typeAt;
    }
    at = typeAt + 10 + readU16(bytes, typeAt + 8);
  }
  if (at !== length) return UNUSUAL;
  const count = optOffset < 0 ? total : total - 1;
  const end = optOffset < 0 ? at : optOffset - 1;
  recordStarts[count] = end;
  const lent: LentSections = sections;
  lent.start = start;
  lent.end = end;
  lent.answerCount = answers;
  lent.authorityCount = authorities;
  lent.additionalCount = count - answers - authorities;
  lent.firstTypeOffset = count === 0 ? 0 : (typeOffsets[0] as number);
  sections.lendRuns(undefined, 0);
  return optOffset;
}

/** End of a name that begins at `start`; -1 for one that `WireReader.checkName` refuses. */
function endOfName(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  let pieceStart = start;
  let behind = -1;
  let pointers = 0;
  let length = 0;
  while (at < end) {
    const octet = octetAt(bytes, at);
    if (octet === 0) return behind < 0 ? at + 1 : behind;
    if (octet < 0xc0) {
      length += octet + 1;
      at += octet + 1;
      if (octet > MAX_LABEL_OCTETS || length >= MAX_NAME_OCTETS || at > end) return -1;
      continue;
    }
    if (at + 2 > end) return -1;
    const target = readU16(bytes, at) & 0x3fff;
    if (target >= pieceStart || target < FIRST_NAME_OFFSET || ++pointers > MAX_POINTERS) return -1;
    if (pointers === 1) behind = at + 2;
    at = target;
    pieceStart = target;
  }
  return -1;
}
