/**
 * The rows of the record table. A row lists its type, number and fields in wire order; reading, writing, presentation form in both
 * directions, canonical form and the TypeScript type of the data follow from the row.
 */
import type { Name } from "./name.ts";
import { RecordClass } from "./numbers.ts";
import type { RdataScanner } from "./rdata-scanner.ts";
import type { WireReader } from "./wire-reader.ts";
import type { WireWriter } from "./wire-writer.ts";

/** One field of RDATA, on the wire and in zone text. */
export interface Field<T> {
  read(reader: WireReader): T;
  /** Skips what `read` would read and refuses what `read` would refuse, without making a value. Default: `read`. */
  check?(reader: WireReader): void;
  write(writer: WireWriter, value: T): void;
  print(value: T): string;
  parse(scanner: RdataScanner): T;
}

/** A record of any type; `data` belongs to the row of `type`, or is {@link OpaqueData}. */
export interface ResourceRecord<D = unknown> {
  readonly name: Name;
  readonly type: number;
  readonly class: number;
  /** Seconds. */
  readonly ttl: number;
  readonly data: D;
}

/** RDATA of a type without row, or given in the form of RFC 3597 section 5. */
export interface OpaqueData {
  readonly octets: Uint8Array;
}

/** A record type: its fields, and how to read and write them. */
export interface RecordKind<D> {
  /** Mnemonic, upper case. */
  readonly name: string;
  readonly type: number;
  readonly fieldNames: readonly string[];
  /** Reads RDATA up to the end of the reader. */
  readData(reader: WireReader): D;
  /** Checks like `readData`, without making the data: see `Field.check`. */
  checkData(reader: WireReader): void;
  writeData(writer: WireWriter, data: D): void;
  printData(data: D): string;
  parseData(scanner: RdataScanner): D;
  /** Narrows a record to this kind. */
  is(record: ResourceRecord): record is ResourceRecord<D>;
  /** Makes a record of this kind; `ttl` in seconds, default class IN. */
  create(name: Name, ttl: number, data: D, recordClass?: number): ResourceRecord<D>;
}

/** The type of the data in records of a kind. */
export type DataOf<K> = K extends RecordKind<infer D> ? D : never;

type FieldTable = Readonly<Record<string, Field<unknown>>>;
type DataOfFields<F extends FieldTable> = {
  readonly [K in keyof F]: F[K] extends Field<infer T> ? T : never;
};

/** A row whose fields follow each other, on the wire and in text. */
export function record<F extends FieldTable>(
  name: string,
  type: number,
  fields: F,
): RecordKind<DataOfFields<F>> {
  const entries: readonly (readonly [keyof F & string, Field<unknown>])[] = Object.entries(fields);
  const checks = entries.map(([, field]) => checkOf(field));
  return recordWith<DataOfFields<F>>(name, type, Object.keys(fields), {
    read(reader) {
      const data: Partial<Record<string, unknown>> = {};
      for (const [key, field] of entries) data[key] = field.read(reader);
      return data as DataOfFields<F>;
    },
    check(reader) {
      for (const check of checks) check(reader);
    },
    write(writer, data) {
      for (const [key, field] of entries) field.write(writer, data[key]);
    },
    print(data) {
      let text = "";
      for (const [key, field] of entries) {
        const part = field.print(data[key]);
        if (part !== "") text += text === "" ? part : ` ${part}`;
      }
      return text;
    },
    parse(scanner) {
      const data: Partial<Record<string, unknown>> = {};
      for (const [key, field] of entries) data[key] = field.parse(scanner);
      return data as DataOfFields<F>;
    },
  });
}

/** A row whose fields depend on each other, or have another order in text than on the wire. */
export function recordWith<D>(
  name: string,
  type: number,
  fieldNames: readonly string[],
  codec: Field<D>,
): RecordKind<D> {
  return {
    name,
    type,
    fieldNames,
    readData: (reader) => codec.read(reader),
    checkData: checkOf(codec),
    writeData: (writer, data) => codec.write(writer, data),
    printData: (data) => codec.print(data),
    parseData: (scanner) => codec.parse(scanner),
    is: (candidate): candidate is ResourceRecord<D> => candidate.type === type && !isOpaque(candidate.data),
    create: (owner, ttl, data, recordClass = RecordClass.IN) => ({
      name: owner,
      type,
      class: recordClass,
      ttl,
      data,
    }),
  };
}

function checkOf(field: Field<unknown>): (reader: WireReader) => void {
  return (reader) => {
    if (field.check === undefined) field.read(reader);
    else field.check(reader);
  };
}

/** True for RDATA that is kept as octets. No row has only a field of that name. */
export function isOpaque(data: unknown): data is OpaqueData {
  return (
    typeof data === "object" &&
    data !== null &&
    "octets" in data &&
    data.octets instanceof Uint8Array &&
    Object.keys(data).length === 1
  );
}
