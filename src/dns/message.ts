/** Whole messages as values (RFC 1035 section 4.1), for code outside of the hot path. */
import { type Edns, readOpt, writeOpt } from "./edns.ts";
import type { Name } from "./name.ts";
import { Flag, opcodeOf } from "./numbers.ts";
import type { ResourceRecord } from "./record-kind.ts";
import { readRecord, readRecordBody, writeRecord } from "./resource-record.ts";
import { RecordType } from "./type-names.ts";
import { WireError, WireReader } from "./wire-reader.ts";
import { WireWriter } from "./wire-writer.ts";

export const HEADER_OCTETS = 12;

/** Name, type and class of a question. */
export interface Question {
  readonly name: Name;
  readonly type: number;
  readonly class: number;
}

/** A message as a value. */
export interface Message {
  readonly id: number;
  /** Bits of `Flag`: QR, AA, TC, RD, RA, Z, AD, CD. */
  readonly flags: number;
  readonly opcode: number;
  /** With the upper bits from OPT. */
  readonly rcode: number;
  readonly questions: readonly Question[];
  readonly answer: readonly ResourceRecord[];
  readonly authority: readonly ResourceRecord[];
  /** Without OPT, which is `edns`. */
  readonly additional: readonly ResourceRecord[];
  readonly edns: Edns | undefined;
}

const FLAG_BITS = Flag.QR | Flag.AA | Flag.TC | Flag.RD | Flag.RA | Flag.Z | Flag.AD | Flag.CD;

/**
 * Decodes one message that fills `bytes`.
 * @throws WireError, and nothing else, for malformed messages
 */
export function decodeMessage(bytes: Uint8Array): Message {
  const reader = new WireReader(bytes);
  const id = reader.u16();
  const flags = reader.u16();
  const [questionCount, answerCount, authorityCount, additionalCount] = [
    reader.u16(),
    reader.u16(),
    reader.u16(),
    reader.u16(),
  ];
  const questions: Question[] = [];
  for (let n = 0; n < questionCount; n++) {
    questions.push({ name: reader.name(), type: reader.u16(), class: reader.u16() });
  }
  const answer = readSection(reader, answerCount);
  const authority = readSection(reader, authorityCount);
  const { records: additional, edns, extendedRcodeBits } = readAdditional(reader, additionalCount);
  if (reader.remaining > 0)
    throw new WireError("TRAILING_OCTETS", reader.offset, "octets after the last record");
  return {
    id,
    flags: flags & FLAG_BITS,
    opcode: opcodeOf(flags),
    rcode: (flags & 0xf) | (extendedRcodeBits << 4),
    questions,
    answer,
    authority,
    additional,
    edns,
  };
}

function readSection(reader: WireReader, count: number): ResourceRecord[] {
  const records: ResourceRecord[] = [];
  for (let n = 0; n < count; n++) records.push(readRecord(reader));
  return records;
}

function readAdditional(
  reader: WireReader,
  count: number,
): { records: ResourceRecord[]; edns: Edns | undefined; extendedRcodeBits: number } {
  const records: ResourceRecord[] = [];
  let edns: Edns | undefined;
  let extendedRcodeBits = 0;
  for (let n = 0; n < count; n++) {
    const start = reader.offset;
    const name = reader.name();
    const type = reader.u16();
    if (type !== RecordType.OPT) {
      records.push(readRecordBody(reader, name, type));
      continue;
    }
    // RFC 6891 sections 6.1.1 and 6.1.2: at most one OPT, and its owner is the root.
    if (edns !== undefined) throw new WireError("BAD_RDATA", start, "second OPT record");
    if (!name.isRoot) throw new WireError("BAD_RDATA", start, "OPT record with an owner");
    ({ edns, extendedRcodeBits } = readOpt(reader));
  }
  return { records, edns, extendedRcodeBits };
}

/**
 * Encodes a message with name compression; OPT comes last, except that TSIG follows it.
 * @throws WireError TOO_LARGE above 65535 octets; RangeError or TypeError for values that cannot be encoded
 */
export function encodeMessage(message: Message, options: { compress?: boolean } = {}): Uint8Array {
  // Without OPT the upper bits would be lost, and BADVERS would read as NOERROR.
  if (message.rcode > (message.edns === undefined ? 0xf : 0xfff))
    throw new RangeError(
      `rcode ${message.rcode} does not fit a message ${message.edns ? "with" : "without"} EDNS`,
    );
  const writer = new WireWriter({ capacity: 512, compress: options.compress ?? true });
  writer.u16(message.id);
  writer.u16((message.flags & FLAG_BITS) | ((message.opcode & 0xf) << 11) | (message.rcode & 0xf));
  writer.u16(message.questions.length);
  writer.u16(message.answer.length);
  writer.u16(message.authority.length);
  writer.u16(message.additional.length + (message.edns === undefined ? 0 : 1));
  for (const question of message.questions) {
    writer.name(question.name);
    writer.u16(question.type);
    writer.u16(question.class);
  }
  for (const record of message.answer) writeRecord(writer, record);
  for (const record of message.authority) writeRecord(writer, record);
  const last = message.additional.at(-1);
  const signature = last?.type === RecordType.TSIG ? last : undefined;
  for (const record of message.additional) if (record !== signature) writeRecord(writer, record);
  if (message.edns !== undefined) writeOpt(writer, message.edns, message.rcode);
  if (signature !== undefined) writeRecord(writer, signature);
  return writer.finish().slice();
}

/** A query with one question and RD set, for clients, health checks and tests. */
export function makeQuery(
  question: { name: Name; type: number; class?: number },
  options: { id?: number; flags?: number; edns?: Edns } = {},
): Message {
  return {
    id: options.id ?? 0,
    flags: options.flags ?? Flag.RD,
    opcode: 0,
    rcode: 0,
    questions: [{ name: question.name, type: question.type, class: question.class ?? 1 }],
    answer: [],
    authority: [],
    additional: [],
    edns: options.edns,
  };
}
