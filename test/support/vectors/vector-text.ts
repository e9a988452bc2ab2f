/** Messages in the words of the vectors, so that what was recorded and what came back can be compared as text. */

import type { Edns, EdnsOption } from "../../../src/dns/edns.ts";
import { decodeExtendedError, EdnsOptionCode } from "../../../src/dns/edns.ts";
import { encodeMessage, type Message, makeQuery } from "../../../src/dns/message.ts";
import { Name } from "../../../src/dns/name.ts";
import {
  className,
  Flag,
  Opcode,
  parseClass,
  parseRcode,
  RecordClass,
  rcodeName,
} from "../../../src/dns/numbers.ts";
import type { ResourceRecord } from "../../../src/dns/record-kind.ts";
import { formatRecord, parseRecord } from "../../../src/dns/resource-record.ts";
import { parseRecordType, recordTypeName } from "../../../src/dns/type-names.ts";
import type { ScriptedReply, VectorAnswer, VectorEdns, VectorOption, VectorQuery } from "./vector-set.ts";

/** The order in which the vectors write them. */
const FLAG_NAMES = ["QR", "AA", "TC", "RD", "RA", "Z", "AD", "CD"] as const;

export function parseFlags(text: string): number {
  return text
    .split(" ")
    .filter((word) => word !== "")
    .reduce((flags, word) => {
      const name = FLAG_NAMES.find((known) => known === word.toUpperCase());
      if (name === undefined) throw new Error(`no flag ${word}`);
      return flags | Flag[name];
    }, 0);
}

function flagsText(flags: number): string {
  return FLAG_NAMES.filter((name) => (flags & Flag[name]) !== 0).join(" ");
}

/** The octets of a recorded query. */
export function queryOf(query: VectorQuery): Uint8Array {
  const type = parseRecordType(query.type);
  const recordClass = parseClass(query.class ?? "IN");
  const opcode = Object.entries(Opcode).find(([name]) => name === (query.opcode ?? "QUERY"))?.[1];
  if (type === undefined || recordClass === undefined || opcode === undefined) {
    throw new Error(`cannot ask ${JSON.stringify(query)}`);
  }
  const edns = query.edns ?? undefined;
  const message = makeQuery(
    { name: nameOf(query.name), type, class: recordClass },
    {
      id: query.id ?? 4660,
      flags: parseFlags(query.flags ?? "RD"),
      ...(edns !== undefined && { edns: ednsOf(edns) }),
    },
  );
  return encodeMessage({ ...message, opcode });
}

/** A name of the vectors, with or without the dot at its end. */
export function nameOf(text: string): Name {
  return Name.parse(text.endsWith(".") && !text.endsWith("\\.") ? text : `${text}.`);
}

function ednsOf({ version, size, do: dnssecOk, options }: VectorEdns): Edns {
  return { version, udpSize: size, dnssecOk, options: options.map(optionOf) };
}

function optionOf(option: VectorOption): EdnsOption {
  if (!("hex" in option)) throw new Error("a query has no extended error");
  return { code: option.code, data: Buffer.from(option.hex, "hex") };
}

/** A message as the vectors would write it, without what the upstream saw. */
export function answerText(message: Message): VectorAnswer {
  const opcode = Object.entries(Opcode).find(([, number]) => number === message.opcode)?.[0];
  return {
    rcode: rcodeName(message.rcode),
    flags: flagsText(message.flags),
    ...(opcode !== "QUERY" && opcode !== undefined && { opcode }),
    question: message.questions.map(questionText),
    answer: message.answer.map(recordText),
    authority: message.authority.map(recordText),
    additional: message.additional.map(recordText),
    edns: message.edns === undefined ? null : ednsText(message.edns),
  };
}

/** A recorded answer with everything that the fixture leaves out, and with records as this project writes them. */
export function completeAnswer(answer: VectorAnswer): VectorAnswer {
  return {
    rcode: rcodeName(parseRcode(answer.rcode) ?? -1),
    flags: flagsText(parseFlags(answer.flags)),
    ...(answer.opcode !== undefined && { opcode: answer.opcode }),
    question: answer.question.map((text) => normalQuestion(text)),
    answer: (answer.answer ?? []).map(normalRecord),
    authority: (answer.authority ?? []).map(normalRecord),
    additional: (answer.additional ?? []).map(normalRecord),
    edns: answer.edns ?? null,
  };
}

/** A query that reached the upstream, with everything that the fixture leaves out. */
export function completeQuery(query: VectorQuery): VectorQuery {
  return {
    name: nameOf(query.name).toString(),
    type: query.type,
    class: query.class ?? "IN",
    flags: query.flags ?? "RD",
    edns: query.edns ?? null,
    transport: query.transport ?? "udp",
  };
}

export function queryText(message: Message, transport: "udp" | "tcp"): VectorQuery {
  const [question] = message.questions;
  if (question === undefined) throw new Error("the upstream was asked without a question");
  return {
    name: question.name.toString(),
    type: recordTypeName(question.type),
    class: className(question.class),
    flags: flagsText(message.flags),
    edns: message.edns === undefined ? null : ednsText(message.edns),
    transport,
  };
}

/** Records of a scripted reply. */
export function scriptedMessage(query: Message, script: ScriptedReply): Message {
  return {
    ...query,
    rcode: parseRcode(script.rcode ?? "NOERROR") ?? 0,
    flags:
      Flag.QR | (query.flags & Flag.RD) | (script.flags === undefined ? Flag.RA : parseFlags(script.flags)),
    answer: (script.answer ?? []).map((line) => parseRecord(line)),
    authority: (script.authority ?? []).map((line) => parseRecord(line)),
    additional: (script.additional ?? []).map((line) => parseRecord(line)),
    edns:
      query.edns === undefined
        ? undefined
        : { udpSize: 1232, version: 0, dnssecOk: query.edns.dnssecOk, options: [] },
  };
}

export function recordText(record: ResourceRecord): string {
  return formatRecord(record).replaceAll("\t", " ");
}

/** The writer of the vectors escapes and spells some data otherwise than this project does. */
function normalRecord(text: string): string {
  try {
    return recordText(parseRecord(text));
  } catch {
    return text;
  }
}

function questionText({ name, type, class: recordClass }: Message["questions"][number]): string {
  return `${name} ${className(recordClass)} ${recordTypeName(type)}`;
}

function normalQuestion(text: string): string {
  const [, name = ".", rest = ""] = /^(\S+) (\S+ \S+)$/.exec(text) ?? [];
  const [recordClass = "IN", type = ""] = rest.split(" ");
  return questionText({
    name: nameOf(name),
    class: parseClass(recordClass) ?? RecordClass.IN,
    type: parseRecordType(type) ?? 0,
  });
}

function ednsText({ version, udpSize, dnssecOk, options }: Edns): VectorEdns {
  return { version, size: udpSize, do: dnssecOk, options: options.map(optionText) };
}

function optionText({ code, data }: EdnsOption): VectorOption {
  const error = code === EdnsOptionCode.EXTENDED_ERROR ? decodeExtendedError(data) : undefined;
  if (error !== undefined) return { code: 15, ede: error.infoCode, text: error.text };
  return { code, hex: Buffer.from(data).toString("hex") };
}
