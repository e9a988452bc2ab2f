/**
 * The three record sections of a reply in wire form, ready to be copied after a header and a question. The cache and precomputed
 * answers store this: sending one needs no decoding, only patches at known places.
 * Octets are at the offsets that they have in the message, so compression pointers stay valid in every message whose question has
 * the same name (in any spelling): the prefix before `start` is replaced, but keeps its length. Names that point to the question,
 * in RDATA too, take the spelling of the current question (RFC 4343 section 4.1 allows it).
 */
import { type AddressRun, addressRunsOf, findAddressRuns, RUN_NUMBERS } from "./address-runs.ts";
import { HEADER_OCTETS, type Question } from "./message.ts";
import type { Name } from "./name.ts";
import { copyOctets, octetAt, passingCopy, readU16, readU32, writeU32 } from "./octets.ts";
import type { ResourceRecord } from "./record-kind.ts";
import { checkRecordBody, readRecord, writeRecord } from "./resource-record.ts";
import { RecordType } from "./type-names.ts";
import { WireError, WireReader } from "./wire-reader.ts";
import { MAX_MESSAGE_OCTETS, WireWriter } from "./wire-writer.ts";

/** The three sections with records of a message. */
export interface RecordSections {
  readonly answer: readonly ResourceRecord[];
  readonly authority: readonly ResourceRecord[];
  readonly additional: readonly ResourceRecord[];
}

export const NO_SECTIONS: RecordSections = { answer: [], authority: [], additional: [] };

/** Owns lent sections, and may reuse their octets for others once they are returned. */
export interface SectionsLender {
  takeBack(): void;
}

/** The parts of sections; see the members of {@link EncodedSections}. */
export interface SectionParts {
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
  /** Records in answer, authority and additional. */
  readonly counts: readonly [number, number, number];
  readonly recordStarts: Uint16Array;
  readonly typeOffsets: Uint16Array;
}

/** Records as octets of a message, which need no decoding to be sent on. */
export class EncodedSections {
  /** A message; the octets before `start` belong to the encoded message and must not be used. */
  readonly bytes: Uint8Array;
  /** Offset of the first record: the end of the question. */
  readonly start: number;
  readonly end: number;
  readonly answerCount: number;
  readonly authorityCount: number;
  /** Without OPT, which no `EncodedSections` contains. */
  readonly additionalCount: number;
  /** Start of each record, and the end after the last of {@link count}; further numbers are undefined. */
  readonly recordStarts: Uint16Array;
  /** Offset of each record's type: its TTL is 4 octets further, its RDATA 10. */
  readonly typeOffsets: Uint16Array;
  /** The first of them, 0 without records: most answers are one record, and this saves a memory access to the table. */
  readonly firstTypeOffset: number;
  /** Present while the sections are lent: see {@link keep}. */
  lender: SectionsLender | undefined;
  #runTable: Uint16Array | undefined;
  #runCount = 0;

  private constructor(parts: SectionParts) {
    this.bytes = parts.bytes;
    this.start = parts.start;
    this.end = parts.end;
    [this.answerCount, this.authorityCount, this.additionalCount] = parts.counts;
    this.recordStarts = parts.recordStarts;
    this.typeOffsets = parts.typeOffsets;
    this.firstTypeOffset = this.count === 0 ? 0 : octetAt16(parts.typeOffsets, 0);
  }

  /** Wraps octets made by the caller, without checks. */
  static of(parts: SectionParts): EncodedSections {
    return new EncodedSections(parts);
  }

  /** Sections without any record, for a question that ends at `start`. */
  static empty(start: number): EncodedSections {
    const recordStarts = Uint16Array.of(start);
    return new EncodedSections({
      bytes: new Uint8Array(0),
      start,
      end: start,
      counts: [0, 0, 0],
      recordStarts,
      typeOffsets: new Uint16Array(0),
    });
  }

  /**
   * Wraps octets encoded elsewhere, at the offsets of a message with a question that ends at `start`.
   * @param counts records of answer, authority and additional section
   */
  static assembled(
    bytes: Uint8Array,
    start: number,
    counts: readonly [number, number, number],
    recordStarts: Uint16Array,
    typeOffsets: Uint16Array,
  ): EncodedSections {
    return new EncodedSections({ bytes, start, end: bytes.length, counts, recordStarts, typeOffsets });
  }

  /**
   * Encodes records for a question. The first record that would make the message larger than 65535 octets is left out with all
   * following ones; `complete` in the result is false then.
   * @throws RangeError or TypeError for data that its type cannot represent
   */
  static encode(
    question: Question,
    sections: RecordSections,
  ): { encoded: EncodedSections; complete: boolean } {
    const writer = WRITER;
    writer.rewind(HEADER_OCTETS);
    writer.name(question.name);
    writer.u16(question.type);
    writer.u16(question.class);
    const start = writer.offset;
    const { answer, authority, additional } = sections;
    const recordStarts = new Uint16Array(answer.length + authority.length + additional.length + 1);
    const typeOffsets = new Uint16Array(recordStarts.length - 1);
    let count = 0;
    let complete = true;
    const write = (records: readonly ResourceRecord[]): number => {
      const before = count;
      for (const record of records) {
        const at = writer.offset;
        const typeOffset = complete ? tryWrite(writer, record) : -1;
        complete = typeOffset >= 0;
        if (!complete) break;
        recordStarts[count] = at;
        typeOffsets[count++] = typeOffset;
      }
      return count - before;
    };
    const counts: [number, number, number] = [write(answer), write(authority), write(additional)];
    const end = writer.offset;
    recordStarts[count] = end;
    const bytes = passingCopy(writer.bytes, 0, end);
    const encoded = new EncodedSections({ bytes, start, end, counts, recordStarts, typeOffsets });
    return { encoded, complete };
  }

  /**
   * Wraps the sections of a received message, which must have one question with an uncompressed name, and whose octets must not
   * change afterwards. Lengths, counts and owners are checked; RDATA is not (see {@link checkData}). All owners together may have
   * at most `MAX_UNPACKED_OCTETS` octets, with pointers followed, and so may the names in RDATA.
   * @param tolerant whether to accept octets after the last record, and an additional section with fewer records than the header
   * claims, as most programs do; the result reports them
   * @throws WireError
   */
  static scan(bytes: Uint8Array, length: number, tolerant = false): ScannedMessage {
    if (length < 12 || length > bytes.length)
      throw new WireError("SHORT_INPUT", length, "message shorter than its header");
    // Offsets are kept in 16 bits.
    if (length > MAX_MESSAGE_OCTETS) throw new WireError("TOO_LARGE", length, "message above 65535 octets");
    if (readU16(bytes, 4) !== 1) throw new WireError("BAD_RDATA", 4, "message without exactly one question");
    const reader = new WireReader(bytes, 12, length);
    reader.checkName(false);
    reader.skip(4);
    const start = reader.offset;
    const counts: [number, number, number] = [readU16(bytes, 6), readU16(bytes, 8), readU16(bytes, 10)];
    let total = counts[0] + counts[1] + counts[2];
    let irregular = false;
    // The smallest record has 11 octets: a count that cannot fit allocates nothing.
    if (total * 11 > length - start) {
      const fitting = tolerant ? Math.floor((length - start) / 11) : 0;
      if (!tolerant || fitting < counts[0] + counts[1])
        throw new WireError("SHORT_INPUT", length, "fewer records than the header claims");
      total = fitting;
      irregular = true;
    }
    let recordStarts = new Uint16Array(total + 1);
    let typeOffsets = new Uint16Array(total);
    let optIndex = -1;
    for (let index = 0; index < total; index++) {
      const at = reader.offset;
      if (tolerant && at === length && index >= counts[0] + counts[1]) {
        total = index;
        irregular = true;
        break;
      }
      recordStarts[index] = at;
      reader.checkName();
      reader.checkUnpacked();
      const typeAt = reader.offset;
      typeOffsets[index] = typeAt;
      reader.skip(8);
      reader.skip(reader.u16());
      if (readU16(bytes, typeAt) === RecordType.OPT) {
        if (optIndex >= 0 || index < counts[0] + counts[1] || octetAt(bytes, at) !== 0)
          throw new WireError("BAD_RDATA", at, "misplaced OPT record");
        optIndex = index;
      }
    }
    const at = reader.offset;
    if (at !== length) {
      if (!tolerant) throw new WireError("TRAILING_OCTETS", at, "octets after the last record");
      irregular = true;
    }
    recordStarts[total] = at;
    if (typeOffsets.length > total) {
      recordStarts = recordStarts.slice(0, total + 1);
      typeOffsets = typeOffsets.slice(0, total);
    }
    counts[2] = total - counts[0] - counts[1];
    if (optIndex < 0) {
      return {
        encoded: new EncodedSections({ bytes, start, end: at, counts, recordStarts, typeOffsets }),
        optOffset: -1,
        extendedRcodeBits: 0,
        irregular,
      };
    }
    const optTypeAt = octetAt16(typeOffsets, optIndex);
    const extendedRcodeBits = octetAt(bytes, optTypeAt + 4);
    counts[2]--;
    if (optIndex === total - 1) {
      const end = octetAt16(recordStarts, optIndex);
      const encoded = new EncodedSections({ bytes, start, end, counts, recordStarts, typeOffsets });
      return { encoded, optOffset: optTypeAt, extendedRcodeBits, irregular };
    }
    return {
      encoded: encodeWithoutOpt(bytes, at, start, recordStarts, optIndex, counts),
      optOffset: optTypeAt,
      extendedRcodeBits,
      irregular,
    };
  }

  /**
   * Checks the RDATA of all records, so that decoding them later cannot fail. A TTL with its highest bit set counts as 0 (RFC 2181
   * section 8), and is replaced in the octets.
   * @throws WireError
   */
  checkData(): void {
    const { bytes, typeOffsets } = this;
    let reader: WireReader | undefined;
    for (let index = 0; index < this.count; index++) {
      const at = octetAt16(typeOffsets, index);
      const type = readU16(bytes, at);
      const length = readU16(bytes, at + 8);
      if (octetAt(bytes, at + 4) > 0x7f) writeU32(bytes, at + 4, 0);
      if ((type === RecordType.A && length === 4) || (type === RecordType.AAAA && length === 16)) continue;
      reader ??= new WireReader(bytes, at, this.end);
      reader.offset = at;
      checkRecordBody(reader);
      reader.checkUnpacked();
    }
  }

  /**
   * Sections that a lender fills again and again: see {@link lendRuns}. `bytes`, `recordStarts` and `typeOffsets` are as long as
   * the largest message, so only `count` has the number of records.
   */
  static forLending(octets: number, records: number): EncodedSections {
    return new EncodedSections({
      bytes: new Uint8Array(octets),
      start: 0,
      end: 0,
      counts: [0, 0, 0],
      recordStarts: new Uint16Array(records + 1),
      typeOffsets: new Uint16Array(records),
    });
  }

  /**
   * For the lender, which has written all other members through `LentSections`: sets {@link runTable}; without a table it is
   * made on demand.
   */
  lendRuns(table: Uint16Array | undefined, count: number): void {
    this.#runTable = table;
    this.#runCount = count;
  }

  /** Makes the octets permanent: the lender allocates others for its next message. */
  keep(): this {
    this.lender = undefined;
    return this;
  }

  get count(): number {
    return this.answerCount + this.authorityCount + this.additionalCount;
  }

  typeAt(index: number): number {
    return readU16(this.bytes, octetAt16(this.typeOffsets, index));
  }

  /** Seconds. */
  ttlAt(index: number): number {
    return readU32(this.bytes, octetAt16(this.typeOffsets, index) + 4);
  }

  /** The owner in the spelling of the octets; a pointer to the question has the spelling of the encoded message. */
  ownerAt(index: number): Name {
    return new WireReader(this.bytes, octetAt16(this.recordStarts, index), this.end).name();
  }

  /** @throws WireError if RDATA is malformed */
  recordAt(index: number): ResourceRecord {
    return readRecord(new WireReader(this.bytes, octetAt16(this.recordStarts, index), this.end));
  }

  /** The smallest TTL of all records; `ceiling` if there are no records or all are larger. Seconds. */
  minimalTtl(ceiling: number): number {
    let least = ceiling;
    for (let index = 0; index < this.count; index++) least = Math.min(least, this.ttlAt(index));
    return least;
  }

  /**
   * Decodes the records.
   * @param question octets of the question whose spelling is used for owners that point to it
   * @throws WireError if RDATA is malformed
   */
  decode(question?: Uint8Array): RecordSections {
    const source = question === undefined ? this : this.forQuestion(question);
    const records: ResourceRecord[] = [];
    for (let index = 0; index < source.count; index++) records.push(source.recordAt(index));
    const authorityEnd = this.answerCount + this.authorityCount;
    return {
      answer: records.slice(0, this.answerCount),
      authority: records.slice(this.answerCount, authorityEnd),
      additional: records.slice(authorityEnd),
    };
  }

  /** The same records after another spelling of the question, given as octets, for owners that point to it. */
  forQuestion(question: Uint8Array): EncodedSections {
    if (question.length !== this.start - HEADER_OCTETS || this.count === 0) return this;
    const bytes = copyOctets(this.bytes, 0, this.end);
    bytes.set(question, HEADER_OCTETS);
    const { start, end, recordStarts, typeOffsets } = this;
    const counts = [this.answerCount, this.authorityCount, this.additionalCount] as const;
    return new EncodedSections({ bytes, start, end, counts, recordStarts, typeOffsets });
  }

  /** The same octets with only the answer section. */
  answerOnly(): EncodedSections {
    if (this.count === this.answerCount) return this;
    if (this.lender !== undefined) {
      // The new object is not shared yet.
      const filled = this as LentSections;
      filled.end = octetAt16(this.recordStarts, this.answerCount);
      filled.authorityCount = 0;
      filled.additionalCount = 0;
      this.#runTable = undefined;
      return this;
    }
    return new EncodedSections({
      bytes: this.bytes,
      start: this.start,
      end: octetAt16(this.recordStarts, this.answerCount),
      counts: [this.answerCount, 0, 0],
      recordStarts: this.recordStarts,
      typeOffsets: this.typeOffsets,
    });
  }

  /** Runs of at least two addresses. */
  get addressRuns(): readonly AddressRun[] {
    return addressRunsOf(this.runTable, this.runCount);
  }

  /** The same as a table whose first {@link runCount} rows are valid: found at the first call and kept. */
  get runTable(): Uint16Array {
    if (this.#runTable === undefined) {
      this.#runTable = this.count < 2 ? NO_RUNS : Uint16Array.from(findAddressRuns(this));
      this.#runCount = this.#runTable.length / RUN_NUMBERS;
    }
    return this.#runTable;
  }

  get runCount(): number {
    // Reading `runTable` finds the runs.
    return this.runTable.length === 0 ? 0 : this.#runCount;
  }
}

const NO_RUNS = new Uint16Array(0);
/** Reused for all messages: each starts after the header, whatever happened to the previous one. */
const WRITER = new WireWriter();
/** The members that a lender may write as long as the sections are not lent. */
export type LentSections = { -readonly [K in keyof EncodedSections]: EncodedSections[K] };

/** What a scan of a message finds without decoding its records. */
export interface ScannedMessage {
  readonly encoded: EncodedSections;
  /** Offset of OPT's type in the scanned octets (its class, TTL and options follow), -1 without OPT. */
  readonly optOffset: number;
  /** The upper 8 of the 12 bits of the rcode. */
  readonly extendedRcodeBits: number;
  /** Whether octets follow the last record, or the additional section has fewer records than the header claims. */
  readonly irregular: boolean;
}

/** @returns the offset of its type, -1 if it does not fit */
function tryWrite(writer: WireWriter, record: ResourceRecord): number {
  const start = writer.offset;
  try {
    return writeRecord(writer, record);
  } catch (error) {
    if (!(error instanceof WireError) || error.code !== "TOO_LARGE") throw error;
    writer.rewind(start);
    return -1;
  }
}

function octetAt16(offsets: Uint16Array, index: number): number {
  return offsets[index] as number;
}

/** The rare message with records after OPT: they move, so their pointers must be made again. */
function encodeWithoutOpt(
  bytes: Uint8Array,
  length: number,
  start: number,
  recordStarts: Uint16Array,
  optIndex: number,
  counts: readonly [number, number, number],
): EncodedSections {
  const records: ResourceRecord[] = [];
  for (let index = 0; index < recordStarts.length - 1; index++) {
    if (index === optIndex) continue;
    records.push(readRecord(new WireReader(bytes, octetAt16(recordStarts, index), length)));
  }
  const [answers, authorities] = counts;
  const name = new WireReader(bytes, 12, length).name();
  const question = { name, type: readU16(bytes, start - 4), class: readU16(bytes, start - 2) };
  const { encoded, complete } = EncodedSections.encode(question, {
    answer: records.slice(0, answers),
    authority: records.slice(answers, answers + authorities),
    additional: records.slice(answers + authorities),
  });
  // Names that were compressed against the rules need more room uncompressed.
  if (!complete) throw new WireError("TOO_LARGE", length, "message above 65535 octets once it is rewritten");
  return encoded;
}
