/** Records on the wire and in zone text: the owner, type, class and TTL around the RDATA of the record table. */
import { parseTtl } from "./fields.ts";
import { Name } from "./name.ts";
import { className, parseClass, RecordClass } from "./numbers.ts";
import { fromHex } from "./octets.ts";
import { opaqueText, type PresentationToken, RdataScanner, tokenizeRecord } from "./rdata-scanner.ts";
import { isOpaque, type OpaqueData, type ResourceRecord } from "./record-kind.ts";
import { recordKind } from "./record-table.ts";
import { parseRecordType, RecordType, recordTypeName } from "./type-names.ts";
import { WireError, WireReader } from "./wire-reader.ts";
import { WireWriter } from "./wire-writer.ts";

/**
 * Reads one record at the reader's position.
 * @throws WireError
 */
export function readRecord(reader: WireReader): ResourceRecord {
  const name = reader.name();
  return readRecordBody(reader, name, reader.u16());
}

/**
 * Reads the rest of a record after its owner and type.
 * @throws WireError
 */
export function readRecordBody(reader: WireReader, name: Name, type: number): ResourceRecord {
  // OPT is part of the message, not a record: a record reader only meets it in a wrong place (RFC 6891 section 6.1.1).
  if (type === RecordType.OPT) throw new WireError("BAD_RDATA", reader.offset, "misplaced OPT record");
  const recordClass = reader.u16();
  const ttl = reader.u32();
  return { name, type, class: recordClass, ttl, data: readData(reader, type, reader.u16()) };
}

function readData(reader: WireReader, type: number, length: number): unknown {
  if (length > reader.remaining) throw new WireError("SHORT_INPUT", reader.offset, "RDATA runs past the end");
  const kind = recordKind(type);
  // RFC 2136 section 2.4: an update may have records without RDATA.
  if (kind === undefined || length === 0) return { octets: reader.octets(length) } satisfies OpaqueData;
  const messageEnd = reader.end;
  reader.end = reader.offset + length;
  const data = kind.readData(reader);
  if (reader.offset !== reader.end)
    throw new WireError("TRAILING_OCTETS", reader.offset, "RDATA longer than its fields");
  reader.end = messageEnd;
  return data;
}

/**
 * Checks type, class, TTL and RDATA of a record at the reader's position, like {@link readRecordBody}, without making values.
 * @throws WireError
 */
export function checkRecordBody(reader: WireReader): void {
  const type = reader.u16();
  if (type === RecordType.OPT) throw new WireError("BAD_RDATA", reader.offset, "misplaced OPT record");
  reader.skip(6);
  const length = reader.u16();
  if (length > reader.remaining) throw new WireError("SHORT_INPUT", reader.offset, "RDATA runs past the end");
  const kind = recordKind(type);
  if (kind === undefined || length === 0) {
    reader.skip(length);
    return;
  }
  const messageEnd = reader.end;
  reader.end = reader.offset + length;
  kind.checkData(reader);
  if (reader.offset !== reader.end)
    throw new WireError("TRAILING_OCTETS", reader.offset, "RDATA longer than its fields");
  reader.end = messageEnd;
}

/**
 * @returns the offset of its type
 * @throws WireError TOO_LARGE past the writer's limit; RangeError or TypeError for data that the type cannot represent
 */
export function writeRecord(writer: WireWriter, record: ResourceRecord): number {
  writer.name(record.name);
  const typeOffset = writer.offset;
  writer.u16(record.type);
  writer.u16(record.class);
  writer.u32(record.ttl);
  const start = writer.openLength();
  writeData(writer, record);
  writer.closeLength(start);
  return typeOffset;
}

function writeData(writer: WireWriter, record: ResourceRecord): void {
  const kind = recordKind(record.type);
  if (isOpaque(record.data)) writer.octets(record.data.octets);
  else if (kind === undefined)
    throw new TypeError(`records of ${recordTypeName(record.type)} take octets as data`);
  else kind.writeData(writer, record.data);
}

/**
 * RDATA in canonical form (RFC 4034 section 6.2): nothing compressed, names of the old types in lower case.
 * @throws as `writeRecord`
 */
export function canonicalData(record: ResourceRecord): Uint8Array {
  const writer = new WireWriter({ capacity: 64, canonical: true });
  writeData(writer, record);
  return writer.finish().slice();
}

/**
 * RDATA without compression, names as spelled: the form that zones keep.
 * @throws as `writeRecord`
 */
export function plainData(record: ResourceRecord): Uint8Array {
  const writer = new WireWriter({ capacity: 64, compress: false });
  writeData(writer, record);
  return writer.finish();
}

/** The record in one line of zone text, fields separated by tabs as in `dig` and zone files. */
export function formatRecord(record: ResourceRecord): string {
  const head = `${record.name}\t${record.ttl}\t${className(record.class)}\t${recordTypeName(record.type)}`;
  const data = formatData(record);
  return data === "" ? head : `${head}\t${data}`;
}

/** RDATA as text; for an unknown type in the form of RFC 3597 section 5. */
export function formatData(record: ResourceRecord): string {
  const { data } = record;
  if (isOpaque(data)) return opaqueText(data.octets);
  return recordKind(record.type)?.printData(data) ?? "";
}

/**
 * Reads one record in zone text: `name [ttl] [class] type rdata`, TTL and class in either order. Names without final dot are
 * completed with `origin`, by default the root; `ttl` (3600) is used if the text has none.
 * @throws PresentationError
 */
export function parseRecord(text: string, options: { origin?: Name; ttl?: number } = {}): ResourceRecord {
  const scanner = new RdataScanner(text, tokenizeRecord(text), 0, options.origin ?? Name.root);
  const name = scanner.domainName("an owner name");
  let ttl: number | undefined;
  let recordClass: number | undefined;
  for (;;) {
    const token = scanner.token("a record type");
    const spelledClass = recordClass === undefined ? parseClass(token.text) : undefined;
    const spelledTtl = ttl === undefined ? parseTtl(token.text) : undefined;
    const type = parseRecordType(token.text);
    // ANY is a class and a type: it is the class if a type follows.
    if (type !== undefined && !(spelledClass !== undefined && namesType(scanner.peek()))) {
      const data = parseData(scanner, type);
      return { name, type, class: recordClass ?? RecordClass.IN, ttl: ttl ?? options.ttl ?? 3600, data };
    }
    if (spelledClass !== undefined) recordClass = spelledClass;
    else if (spelledTtl !== undefined) ttl = spelledTtl;
    else throw scanner.fail(`"${token.text}" is not a record type`, token);
  }
}

function namesType(token: PresentationToken | undefined): boolean {
  return token !== undefined && parseRecordType(token.text) !== undefined;
}

/**
 * Reads RDATA text for a type; the form of RFC 3597 section 5 is accepted for every type.
 * @throws PresentationError
 */
export function parseData(scanner: RdataScanner, type: number): unknown {
  const kind = recordKind(type);
  const first = scanner.peek();
  if (first?.text === "\\#" && !first.quoted) {
    scanner.token("\\#");
    const octets = parseOpaque(scanner);
    return kind === undefined || octets.length === 0 ? { octets } : dataFromOctets(scanner, type, octets);
  }
  if (kind === undefined)
    throw scanner.fail(`${recordTypeName(type)} has no text form: write \\# LENGTH HEX`);
  const data = kind.parseData(scanner);
  const left = scanner.peek();
  if (left !== undefined) throw scanner.fail(`unexpected "${left.text}" after the ${kind.name} data`, left);
  return data;
}

function parseOpaque(scanner: RdataScanner): Uint8Array {
  const length = scanner.integer("a length", 65535);
  const octets = fromHex(scanner.restJoined());
  if (octets?.length !== length) throw scanner.fail(`not ${length} octets in hexadecimal`);
  return octets;
}

function dataFromOctets(scanner: RdataScanner, type: number, octets: Uint8Array): unknown {
  try {
    return dataFromWire(type, octets);
  } catch (error) {
    if (error instanceof WireError)
      throw scanner.fail(`the octets are not ${recordTypeName(type)} data: ${error.message}`);
    throw error;
  }
}

/**
 * Data of a type from RDATA octets without compression.
 * @throws WireError
 */
export function dataFromWire(type: number, octets: Uint8Array): unknown {
  return readData(new WireReader(octets, 0, octets.length, octets.length), type, octets.length);
}
