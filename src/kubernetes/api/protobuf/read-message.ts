/**
 * Protobuf -> plain values with the names that JSON has, by the descriptions in kubernetes-pb.ts. What is not described is skipped
 * without a look at it. A list of a large cluster is 50 MB, nearly all of which is thrown away at once: so nothing is built that
 * no reader needs, and texts that come again and again are the same text.
 */
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import type { TextPool } from "./text-pool.ts";

/** Octets that are not the protobuf that they are said to be. */
export class ProtobufError extends Error {
  override readonly name = "ProtobufError";
}

export type ProtobufMessage = Readonly<Record<string, unknown>>;

/** What of messages, and of those within, is wanted. */
export interface Wants {
  /** Fields that are passed over. */
  readonly unwanted: readonly DescField[];
  /** Of some maps the only keys that are read. */
  readonly keys: ReadonlyMap<DescField, readonly string[]>;
}

/** Reads messages of one type. Fields that are not there are missing in what it returns, whatever their type. */
export class MessageReader {
  readonly #description: DescMessage;
  readonly #wants: Wants;
  #fields: readonly (FieldReader | undefined)[] | undefined;

  constructor(description: DescMessage, wants: Wants = EVERYTHING) {
    this.#description = description;
    this.#wants = wants;
  }

  /** A reader that passes over what is not wanted. */
  wanting(wants: Wants): MessageReader {
    return new MessageReader(this.#description, wants);
  }

  /** @throws ProtobufError */
  read(octets: Uint8Array, texts: TextPool): ProtobufMessage {
    const source = new Source(octets, texts);
    return this.readFrom(source, source.octets.length);
  }

  /** @param end behind the message's last octet */
  readFrom(source: Source, end: number): ProtobufMessage {
    this.#fields ??= fieldsOf(this.#description, this.#wants);
    const fields = this.#fields;
    const message: Record<string, unknown> = {};
    while (source.at < end) {
      const tag = source.varint();
      const field = fields[tag >>> 3];
      if (field === undefined || field.wireType !== (tag & 7)) source.skip(tag & 7, end);
      else field.readInto(message, source, end);
    }
    source.requireEnd(end);
    return message;
  }
}

const NO_OCTETS = Buffer.alloc(0);

const EVERYTHING: Wants = { unwanted: [], keys: new Map() };

/** Octets, and how far they are read. */
export class Source {
  octets: Buffer = NO_OCTETS;
  readonly texts: TextPool;
  at = 0;

  constructor(octets: Uint8Array, texts: TextPool) {
    this.texts = texts;
    this.open(octets);
  }

  /** Goes to the first of other octets. */
  open(octets: Uint8Array): void {
    this.octets = Buffer.isBuffer(octets)
      ? octets
      : Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength);
    this.at = 0;
  }

  /** Lets go of the octets, which have been read. */
  close(): void {
    this.octets = NO_OCTETS;
    this.at = 0;
  }

  /** A number; of one with more than 32 bits, the lowest. */
  varint(): number {
    const only = this.octets[this.at];
    if (only !== undefined && only < 0x80) {
      this.at++;
      return only;
    }
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const octet = this.octets[this.at++];
      if (octet === undefined) throw new ProtobufError("a number breaks off");
      if (shift < 32) value |= (octet & 0x7f) << shift;
      if (octet < 0x80) return value >>> 0;
    }
    throw new ProtobufError("a number of more than ten octets");
  }

  /** The length of a field. @returns where the field ends */
  length(end: number): number {
    const length = this.varint();
    if (length > end - this.at) throw new ProtobufError("a field is longer than its message");
    return this.at + length;
  }

  /** @throws ProtobufError where a message was read beyond its end */
  requireEnd(end: number): void {
    if (this.at !== end) throw new ProtobufError("a field is longer than its message");
  }

  skip(wireType: number, end: number): void {
    switch (wireType) {
      case 0:
        this.varint();
        break;
      case 1:
        this.at += 8;
        break;
      case 2:
        this.at = this.length(end);
        break;
      case 5:
        this.at += 4;
        break;
      default:
        throw new ProtobufError(`a field of wire type ${wireType}`);
    }
  }

  /**
   * An address of IPv4 without the text of it: nearly all that a large slice has are addresses, and each comes once.
   * @returns a number; -1 for any other text, which is still to be read then
   */
  ipv4(end: number): number {
    const start = this.at;
    const stop = this.length(end);
    const address = ipv4Between(this.octets, this.at, stop);
    this.at = address === -1 ? start : stop;
    return address;
  }

  text(end: number): string {
    const stop = this.length(end);
    const text = this.texts.read(this.octets, this.at, stop);
    this.at = stop;
    return text;
  }
}

/** Four numbers without leading zeros and dots between, as API servers write them. */
function ipv4Between(octets: Buffer, start: number, stop: number): number {
  let address = 0;
  let dots = 0;
  let digits = 0;
  let value = 0;
  for (let at = start; at < stop; at++) {
    const octet = octets[at] ?? 0;
    if (octet === DOT) {
      if (digits === 0 || dots === 3) return -1;
      address = address * 256 + value;
      dots++;
      digits = 0;
      value = 0;
      continue;
    }
    const digit = octet - ZERO;
    if (digit < 0 || digit > 9 || (digits > 0 && value === 0)) return -1;
    value = value * 10 + digit;
    digits++;
    if (value > 255) return -1;
  }
  return dots === 3 && digits > 0 ? address * 256 + value : -1;
}

const DOT = 0x2e;
const ZERO = 0x30;

/** Reads the value of one field and puts it into its message. */
interface FieldReader {
  readonly wireType: number;
  readInto(message: Record<string, unknown>, source: Source, end: number): void;
}

const VARINT = 0;
const LENGTH_DELIMITED = 2;

function fieldsOf({ fields }: DescMessage, wants: Wants): readonly (FieldReader | undefined)[] {
  const readers: (FieldReader | undefined)[] = [];
  for (const field of fields)
    if (!wants.unwanted.includes(field)) readers[field.number] = fieldReader(field, wants);
  // Without holes, so that a look at a number that is not there is as quick as any other.
  return Array.from(readers);
}

function fieldReader(field: DescField, wants: Wants): FieldReader {
  const { localName: key } = field;
  if (field.fieldKind === "map") return mapReader(key, wants.keys.get(field));
  const { wireType, read } =
    field.message === undefined ? scalarReader(field.scalar) : messageReader(field.message, wants);
  return {
    wireType,
    readInto:
      field.fieldKind === "list"
        ? (message, source, end) => {
            const list = message[key];
            const value = read(source, end);
            if (Array.isArray(list)) list.push(value);
            else message[key] = [value];
          }
        : (message, source, end) => {
            message[key] = read(source, end);
          },
  };
}

interface ValueReader {
  readonly wireType: number;
  readonly read: (source: Source, end: number) => unknown;
}

function messageReader(description: DescMessage, wants: Wants): ValueReader {
  const reader = new MessageReader(description, wants);
  return {
    wireType: LENGTH_DELIMITED,
    read: (source, end) => reader.readFrom(source, source.length(end)),
  };
}

function scalarReader(type: ScalarType | undefined): ValueReader {
  switch (type) {
    case ScalarType.STRING:
      return { wireType: LENGTH_DELIMITED, read: (source, end) => source.text(end) };
    case ScalarType.BYTES:
      return {
        wireType: LENGTH_DELIMITED,
        read: (source, end) => {
          const stop = source.length(end);
          const octets = source.octets.subarray(source.at, stop);
          source.at = stop;
          return octets;
        },
      };
    case ScalarType.BOOL:
      return { wireType: VARINT, read: (source) => source.varint() !== 0 };
    case ScalarType.INT32:
      return { wireType: VARINT, read: (source) => source.varint() | 0 };
    case ScalarType.INT64:
      // Times are the only ones, and that there is one is all that counts.
      return { wireType: VARINT, read: (source) => source.varint() };
    default:
      throw new RangeError(`no reader for scalars of type ${type}`);
  }
}

/**
 * Labels and annotations: a message for each entry, with a key and a text.
 * @param wanted the only ones that are read, of ASCII
 */
function mapReader(key: string, wanted: readonly string[] | undefined): FieldReader {
  return {
    wireType: LENGTH_DELIMITED,
    readInto: (message, source, end) => {
      const stop = source.length(end);
      if (wanted !== undefined && !isKeyAmong(wanted, source, stop)) {
        source.at = stop;
        return;
      }
      let name = "";
      let value = "";
      while (source.at < stop) {
        const tag = source.varint();
        if (tag === 0x0a) name = source.text(stop);
        else if (tag === 0x12) value = source.text(stop);
        else source.skip(tag & 7, stop);
      }
      source.requireEnd(stop);
      const map = message[key];
      if (isMap(map)) map[name] = value;
      else message[key] = { [name]: value };
    },
  };
}

/** Whether the entry begins with one of the keys. What begins with something else is for the one who reads it. */
export function isKeyAmong(wanted: readonly string[], { octets, at }: Source, stop: number): boolean {
  const length = octets[at + 1] ?? 0;
  if (octets[at] !== 0x0a || length > 0x7f) return true;
  const start = at + 2;
  if (start + length > stop) return true;
  for (const key of wanted) if (key.length === length && isTextAt(key, octets, start)) return true;
  return false;
}

function isTextAt(text: string, octets: Buffer, start: number): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) !== octets[start + at]) return false;
  return true;
}

function isMap(value: unknown): value is Record<string, string> {
  return typeof value === "object" && value !== null;
}
