/** The addresses of an RRset within encoded records, so that they can be reordered without decoding. */
import { readU16 } from "./octets.ts";
import { RecordType } from "./type-names.ts";

/** A run of A or AAAA records of one owner, whose addresses may be swapped within the encoded octets. */
export interface AddressRun {
  /** Offset of the first address. */
  readonly first: number;
  /** Octets from one address to the next. */
  readonly stride: number;
  /** 4 or 16. */
  readonly size: number;
  readonly count: number;
}

/** Columns of `EncodedSections.runTable`, where a run is a row and not an object. */
export const RunField = { FIRST: 0, STRIDE: 1, SIZE: 2, COUNT: 3 } as const;
/** Numbers of a row. */
export const RUN_NUMBERS = 4;

/** The rows of a table as objects. */
export function addressRunsOf(table: Uint16Array, count: number): AddressRun[] {
  return Array.from({ length: count }, (_, run) => ({
    first: octetAt16(table, run * RUN_NUMBERS + RunField.FIRST),
    stride: octetAt16(table, run * RUN_NUMBERS + RunField.STRIDE),
    size: octetAt16(table, run * RUN_NUMBERS + RunField.SIZE),
    count: octetAt16(table, run * RUN_NUMBERS + RunField.COUNT),
  }));
}

/** Records in wire form: see `EncodedSections`. */
interface RecordPlaces {
  readonly bytes: Uint8Array;
  readonly answerCount: number;
  readonly authorityCount: number;
  readonly additionalCount: number;
  readonly recordStarts: Uint16Array;
  readonly typeOffsets: Uint16Array;
}

/** Finds the runs of at least two addresses: {@link RUN_NUMBERS} numbers each. */
export function findAddressRuns(sections: RecordPlaces): number[] {
  const runs: number[] = [];
  const { bytes, typeOffsets, recordStarts } = sections;
  const boundaries = [
    sections.answerCount,
    sections.answerCount + sections.authorityCount,
    sections.answerCount + sections.authorityCount + sections.additionalCount,
  ];
  let index = 0;
  for (const boundary of boundaries) {
    while (index < boundary) {
      const first = index;
      const type = readU16(bytes, octetAt16(typeOffsets, first));
      const size = type === RecordType.A ? 4 : type === RecordType.AAAA ? 16 : 0;
      const stride = octetAt16(recordStarts, first + 1) - octetAt16(recordStarts, first);
      index++;
      if (size === 0 || readU16(bytes, octetAt16(typeOffsets, first) + 8) !== size) continue;
      while (index < boundary && sameHead(sections, first, index, stride)) index++;
      if (index - first > 1) runs.push(octetAt16(typeOffsets, first) + 10, stride, size, index - first);
    }
  }
  return runs;
}

/** Two records whose octets differ only in TTL and RDATA belong to one RRset: equal pointers mean equal owners. */
function sameHead(sections: RecordPlaces, one: number, other: number, stride: number): boolean {
  const { bytes, recordStarts, typeOffsets } = sections;
  const oneStart = octetAt16(recordStarts, one);
  const otherStart = octetAt16(recordStarts, other);
  if (octetAt16(recordStarts, other + 1) - otherStart !== stride) return false;
  const head = octetAt16(typeOffsets, one) - oneStart;
  if (octetAt16(typeOffsets, other) - otherStart !== head) return false;
  for (let at = 0; at < head + 4; at++) if (bytes[oneStart + at] !== bytes[otherStart + at]) return false;
  return readU16(bytes, otherStart + head + 8) === readU16(bytes, oneStart + head + 8);
}

function octetAt16(offsets: Uint16Array, index: number): number {
  return offsets[index] as number;
}
