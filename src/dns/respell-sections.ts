/**
 * Encodes the records of a reply for another question, with other names, from octets to octets: only names are decoded, one at a
 * time, into a reused buffer.
 */
import { EncodedSections, type LentSections, type SectionsLender } from "./encoded-sections.ts";
import { FOLD, octetAt, readU16, writeU16, writeU32 } from "./octets.ts";
import { RecordType } from "./type-names.ts";
import { WireName } from "./wire-name.ts";
import { WireError } from "./wire-reader.ts";
import { MAX_MESSAGE_OCTETS } from "./wire-writer.ts";

/** Changes names, in place. */
export interface NameChange {
  owner(name: WireName): void;
  /** The name that RDATA points to: the target of CNAME, DNAME, NS, PTR, MX, SRV and NAPTR, and the primary server of SOA. */
  value(name: WireName): void;
}

/** A question as octets: its name begins at octet 12. */
export interface QuestionOctets {
  readonly bytes: Uint8Array;
  readonly nameEnd: number;
}

/** RDATA with names: octets and character strings before them, and how to handle the names. */
interface NameLayout {
  readonly fixed: number;
  readonly strings: number;
  readonly names: number;
  /** RFC 3597 section 4. */
  readonly compressed: boolean;
  /** Whether the first name is a value in the sense of {@link NameChange}. */
  readonly isValue: boolean;
}

const layout = (
  fixed: number,
  names: number,
  compressed: boolean,
  isValue: boolean,
  strings = 0,
): NameLayout => ({ fixed, strings, names, compressed, isValue });

/** Types whose RDATA may arrive with compressed names, including those where compression is forbidden. */
const LAYOUTS: ReadonlyMap<number, NameLayout> = new Map([
  [RecordType.NS, layout(0, 1, true, true)],
  [RecordType.CNAME, layout(0, 1, true, true)],
  [RecordType.PTR, layout(0, 1, true, true)],
  [RecordType.SOA, layout(0, 2, true, true)],
  [RecordType.MX, layout(2, 1, true, true)],
  [RecordType.SRV, layout(6, 1, false, true)],
  [RecordType.DNAME, layout(0, 1, false, true)],
  [RecordType.NAPTR, layout(4, 1, false, true, 3)],
  [RecordType.MD, layout(0, 1, true, false)],
  [RecordType.MF, layout(0, 1, true, false)],
  [RecordType.MB, layout(0, 1, true, false)],
  [RecordType.MG, layout(0, 1, true, false)],
  [RecordType.MR, layout(0, 1, true, false)],
  [RecordType.MINFO, layout(0, 2, true, false)],
  [RecordType.RP, layout(0, 2, false, false)],
  [RecordType.AFSDB, layout(2, 1, false, false)],
  [RecordType.RT, layout(2, 1, false, false)],
  [RecordType.KX, layout(2, 1, false, false)],
  [RecordType.PX, layout(2, 2, false, false)],
  [RecordType.SIG, layout(18, 1, false, false)],
  [RecordType.RRSIG, layout(18, 1, false, false)],
  [RecordType.NXT, layout(0, 1, false, false)],
  [RecordType.NSEC, layout(0, 1, false, false)],
]);

/** Labels that later names may point to. */
const KNOWN_LABELS = 96;
const MAX_POINTER = 0x3fff;
/** Points to the name of the question, after the header. */
const QUESTION_POINTER = 0xc00c;
const MAX_NAME_OCTETS = 255;
const FIRST_CAPACITY = 1024;
const USUAL_RECORDS = 16;
/** Usually one reply is in progress, and some more while names are looked up for it. */
const MAX_FRAMES = 8;
const NO_OCTETS: Uint8Array = new Uint8Array(0);

/** Keeps its buffers from one reply to the next. */
export class SectionsRespeller {
  readonly #name = new WireName();
  readonly #known = new Uint16Array(KNOWN_LABELS);
  #knownCount = 0;
  readonly #frames: Frame[] = [];
  /** The octets of the frame, or larger ones if they do not fit. */
  #out = NO_OCTETS;
  /** The pointer that was the owner of the previous record, and its new form; -1 for none. */
  #lastOwner = -1;
  #lastWritten = 0;
  /** The question of the sections, until its name has been added to the known names. */
  #question = NO_OCTETS;
  #questionEnd = 0;
  #at = 0;
  /** The input; the octets before the sections' start are not valid. */
  #source = NO_OCTETS;
  #sourceStart = 0;
  #askedBytes = NO_OCTETS;

  /**
   * @param asked the question that the sections were encoded for
   * @param question the question to encode them for
   * @param keepsQuestion whether the old question's name becomes the new one's, so that owners which point to it need no change
   * @param ttl returns the new TTL of a record in seconds; default: the old one
   * @throws WireError for malformed names or RDATA, and for a result that is too large for a message
   */
  respell(
    sections: EncodedSections,
    asked: QuestionOctets,
    question: QuestionOctets,
    change: NameChange | undefined,
    keepsQuestion = false,
    ttl?: (seconds: number) => number,
  ): EncodedSections {
    const { count } = sections;
    let frame = this.#frames.pop();
    if (frame === undefined || frame.sections.typeOffsets.length < count)
      frame = new Frame(this.#frames, FIRST_CAPACITY, Math.max(USUAL_RECORDS, count));
    this.#out = frame.sections.bytes;
    this.#begin(sections, asked, question, keepsQuestion);
    const start = this.#at;
    const { recordStarts, typeOffsets } = frame.sections;
    for (let index = 0; index < count; index++) {
      const typeAt = sections.typeOffsets[index] as number;
      recordStarts[index] = this.#at;
      this.#owner(sections.recordStarts[index] as number, sections.end, change);
      typeOffsets[index] = this.#at;
      this.#record(sections, typeAt, change);
      if (ttl !== undefined)
        writeU32(this.#out, (typeOffsets[index] as number) + 4, ttl(sections.ttlAt(index)));
    }
    recordStarts[count] = this.#at;
    this.#source = NO_OCTETS;
    this.#askedBytes = NO_OCTETS;
    this.#question = NO_OCTETS;
    return this.#finish(frame, sections, start);
  }

  #finish(
    frame: Frame,
    { answerCount, authorityCount, additionalCount, count }: EncodedSections,
    start: number,
  ): EncodedSections {
    const made = frame.sections;
    if (this.#out !== made.bytes) {
      // Too large for the frame, which is returned.
      frame.takeBack();
      const counts = [answerCount, authorityCount, additionalCount] as const;
      const bytes = this.#out.slice(0, this.#at);
      const recordStarts = made.recordStarts.slice(0, count + 1);
      const typeOffsets = made.typeOffsets.slice(0, count);
      return EncodedSections.of({ bytes, start, end: this.#at, counts, recordStarts, typeOffsets });
    }
    const filled: LentSections = made;
    filled.start = start;
    filled.end = this.#at;
    filled.answerCount = answerCount;
    filled.authorityCount = authorityCount;
    filled.additionalCount = additionalCount;
    filled.firstTypeOffset = count === 0 ? 0 : (made.typeOffsets[0] as number);
    made.lendRuns(undefined, 0);
    made.lender = frame;
    return made;
  }

  /** Records of one RRset usually have the same pointer as their owner, so the result is reused. */
  #owner(from: number, end: number, change: NameChange | undefined): void {
    const first = octetAt(this.#source, from);
    const pointer = first >= 0xc0 ? (first << 8) | octetAt(this.#source, from + 1) : -1;
    if (pointer >= 0 && pointer === this.#lastOwner) {
      this.#reserve(2);
      writeU16(this.#out, this.#at, this.#lastWritten);
      this.#at += 2;
      return;
    }
    this.#readName(from, end);
    change?.owner(this.#name);
    const at = this.#at;
    this.#writeName(true);
    this.#lastOwner = this.#at === at + 2 ? pointer : -1;
    if (this.#lastOwner >= 0) this.#lastWritten = readU16(this.#out, at);
  }

  #begin(
    sections: EncodedSections,
    asked: QuestionOctets,
    question: QuestionOctets,
    keepsQuestion: boolean,
  ): void {
    this.#source = sections.bytes;
    this.#sourceStart = sections.start;
    this.#askedBytes = asked.bytes;
    this.#question = question.bytes;
    this.#questionEnd = question.nameEnd;
    this.#knownCount = 0;
    this.#lastOwner = keepsQuestion ? QUESTION_POINTER : -1;
    this.#lastWritten = QUESTION_POINTER;
    this.#at = 0;
    this.#reserve(question.nameEnd + 4);
    this.#at = question.nameEnd + 4;
  }

  /** Adds the question's name as a target of pointers. The server itself writes the question. */
  #knowQuestion(): void {
    const at = this.#at;
    for (let index = 12; index < this.#questionEnd; index++)
      this.#out[index] = octetAt(this.#question, index);
    this.#question = NO_OCTETS;
    this.#at = 12;
    this.#remember(this.#questionEnd - 12);
    this.#at = at;
  }

  /** Type, class, TTL and RDATA. */
  #record(sections: EncodedSections, typeAt: number, change: NameChange | undefined): void {
    const { bytes } = sections;
    const rdataAt = typeAt + 10;
    const end = rdataAt + readU16(bytes, typeAt + 8);
    this.#copy(bytes, typeAt, rdataAt);
    const names = LAYOUTS.get(readU16(bytes, typeAt));
    if (names === undefined || end === rdataAt) {
      this.#copy(bytes, rdataAt, end);
      return;
    }
    const lengthAt = this.#at - 2;
    let at = rdataAt + names.fixed;
    for (let string = 0; string < names.strings; string++) at += 1 + (bytes[at] ?? 0);
    if (at > end) throw new WireError("SHORT_INPUT", at, "RDATA ends within its fields");
    this.#copy(bytes, rdataAt, at);
    for (let index = 0; index < names.names; index++) {
      at = this.#readName(at, end);
      if (index === 0 && names.isValue) change?.value(this.#name);
      this.#writeName(names.compressed);
    }
    if (at > end) throw new WireError("SHORT_INPUT", at, "RDATA ends within a name");
    this.#copy(bytes, at, end);
    writeU16(this.#out, lengthAt, this.#at - lengthAt - 2);
  }

  /** Reads a name into the buffer for names. @returns the offset after it */
  #readName(from: number, end: number): number {
    const name = this.#name;
    let bytes = this.#source;
    let at = from;
    let behind = -1;
    let length = 0;
    for (;;) {
      const octet = bytes[at] ?? -1;
      if (octet === 0) break;
      if (octet >= 0xc0) {
        const target = ((octet & 0x3f) << 8) | octetAt(bytes, at + 1);
        if (behind < 0) behind = at + 2;
        // Pointers lead backwards, so they come to an end.
        if (target >= at || target < 12) throw new WireError("BAD_POINTER", at, "pointer leads nowhere");
        at = target;
        if (at < this.#sourceStart) bytes = this.#askedBytes;
        continue;
      }
      if (octet < 0 || octet > 63 || length + octet + 2 > MAX_NAME_OCTETS)
        throw new WireError("BAD_LABEL", at, "malformed name");
      for (let index = 0; index <= octet; index++) name.octets[length + index] = octetAt(bytes, at + index);
      length += octet + 1;
      at += octet + 1;
    }
    name.octets[length] = 0;
    name.length = length + 1;
    const after = behind < 0 ? at + 1 : behind;
    if (after > end) throw new WireError("SHORT_INPUT", at, "name runs past the end");
    return after;
  }

  /** Writes the name of the buffer, with a pointer for a suffix that is already written. */
  #writeName(compressed: boolean): void {
    if (this.#question !== NO_OCTETS) this.#knowQuestion();
    const { octets, length } = this.#name;
    this.#reserve(length);
    let end = length;
    let pointer = -1;
    if (compressed) {
      for (let at = 0; octetAt(octets, at) !== 0; at += octetAt(octets, at) + 1) {
        pointer = this.#placeOfSuffix(at);
        if (pointer < 0) continue;
        end = at;
        break;
      }
    }
    const start = this.#at;
    for (let index = 0; index < end; index++) this.#out[start + index] = octetAt(octets, index);
    this.#remember(pointer < 0 ? length : end);
    this.#at = start + end;
    if (pointer < 0) return;
    writeU16(this.#out, this.#at, 0xc000 | pointer);
    this.#at += 2;
  }

  /** Offset of the written labels that equal the buffer's name from `at` on, in any spelling; -1 if not found. */
  #placeOfSuffix(at: number): number {
    const { octets, length } = this.#name;
    for (let index = 0; index < this.#knownCount; index++) {
      const known = this.#known[index] as number;
      let place = known;
      let same = true;
      for (let own = at; same && own < length; own++, place++) {
        while (octetAt(this.#out, place) >= 0xc0 && isLabelStart(octets, at, own))
          place = ((octetAt(this.#out, place) & 0x3f) << 8) | octetAt(this.#out, place + 1);
        same = octetAt(FOLD, octetAt(octets, own)) === octetAt(FOLD, octetAt(this.#out, place));
      }
      if (same) return known;
    }
    return -1;
  }

  /** Remembers the labels that begin within `length` octets from the write position on. */
  #remember(length: number): void {
    for (let at = this.#at; at < this.#at + length; ) {
      const octet = octetAt(this.#out, at);
      if (octet === 0 || at > MAX_POINTER || this.#knownCount === KNOWN_LABELS) return;
      this.#known[this.#knownCount++] = at;
      at += octet + 1;
    }
  }

  #copy(bytes: Uint8Array, from: number, to: number): void {
    this.#reserve(to - from);
    for (let at = from; at < to; at++) this.#out[this.#at++] = octetAt(bytes, at);
  }

  /** Makes room for `length` octets and a pointer at the write position. */
  #reserve(length: number): void {
    const needed = this.#at + length + 2;
    if (needed > MAX_MESSAGE_OCTETS + 2)
      throw new WireError("TOO_LARGE", this.#at, "message above 65535 octets once it is rewritten");
    if (needed <= this.#out.length) return;
    const larger = new Uint8Array(Math.max(needed, 2 * this.#out.length));
    larger.set(this.#out);
    this.#out = larger;
  }
}

/** A buffer lent to one reply at a time, and returned when the reply has been sent. */
class Frame implements SectionsLender {
  readonly sections: EncodedSections;
  readonly #free: Frame[];

  constructor(free: Frame[], octets: number, records: number) {
    this.#free = free;
    this.sections = EncodedSections.forLending(octets, records);
  }

  takeBack(): void {
    if (this.#free.length < MAX_FRAMES) this.#free.push(this);
  }
}

/** Whether a label of the name begins at `place`, when walking from the one at `from`. */
function isLabelStart(octets: Uint8Array, from: number, place: number): boolean {
  let at = from;
  while (at < place) at += octetAt(octets, at) + 1;
  return at === place;
}
