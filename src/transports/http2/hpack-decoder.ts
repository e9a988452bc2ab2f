/**
 * Decodes header blocks of HTTP/2 (HPACK, RFC 7541). Values are passed on in place. The dynamic table only keeps the values that
 * are used here, and the sizes of all others.
 */
import { copyOctets } from "../../dns/octets.ts";
import { decodeHuffmanInto, mostDecoded } from "../huffman.ts";
import { FieldName, fieldNumber, STATIC_TABLE } from "./hpack-fields.ts";

/** The octets are not a header block: the connection ends, since later blocks cannot be decoded (RFC 9113 section 4.3). */
export class HpackError extends Error {
  override readonly name = "HpackError";
}

export interface FieldSink {
  /**
   * One field. The value is lent until the block has been decoded.
   * @param name a {@link FieldName}
   * @param size as in header lists: both texts and 32 (RFC 7541 section 4.1)
   */
  field(name: number, octets: Uint8Array, start: number, end: number, size: number): void;
}

/** Octets of one header block. */
export const MAX_BLOCK = 16 * 1024;
/** Octets of the dynamic table: the default of HTTP/2, which we never change. */
const MAX_TABLE = 4096;
const ENTRY_OVERHEAD = 32;
const MAX_ENTRIES = MAX_TABLE / ENTRY_OVERHEAD;

interface TableEntry {
  readonly name: number;
  /** Octets of the name. */
  readonly nameLength: number;
  /** Empty if the name has no use here. */
  readonly value: Uint8Array;
  readonly size: number;
}

const NO_OCTETS = new Uint8Array(0);

const STATIC: readonly TableEntry[] = STATIC_TABLE.map(([name, value]) => ({
  name: fieldNumber(name),
  nameLength: name.length,
  value: Buffer.from(value, "latin1"),
  size: name.length + value.length + ENTRY_OVERHEAD,
}));

/** Buffer for the Huffman-decoded texts of one block; any number of decoders may share it. */
export function hpackScratch(): Uint8Array {
  return new Uint8Array(mostDecoded(MAX_BLOCK));
}

export class HpackDecoder {
  readonly #scratch: Uint8Array;
  /** A ring; the newest entry is before `#next`. */
  readonly #entries: TableEntry[] = [];
  #next = 0;
  #count = 0;
  #size = 0;
  #limit = MAX_TABLE;
  // The input and the position in it.
  #octets: Uint8Array = NO_OCTETS;
  #at = 0;
  #end = 0;
  #scratchAt = 0;
  // The last decoded text.
  #text: Uint8Array = NO_OCTETS;
  #textStart = 0;
  #textEnd = 0;

  constructor(scratch: Uint8Array) {
    this.#scratch = scratch;
  }

  /**
   * Decodes the block from `start` to `end`, at most {@link MAX_BLOCK} octets.
   * @throws HpackError
   */
  decode(octets: Uint8Array, start: number, end: number, sink: FieldSink): void {
    this.#octets = octets;
    this.#at = start;
    this.#end = end;
    this.#scratchAt = 0;
    let isBeginning = true;
    while (this.#at < end) {
      const first = octets[this.#at] as number;
      if ((first & 0xe0) === 0x20) {
        if (!isBeginning) throw new HpackError("size of the table within a block");
        this.#resize(this.#integer(5));
        continue;
      }
      isBeginning = false;
      if ((first & 0x80) !== 0) {
        const { name, value, size } = this.#entry(this.#integer(7));
        sink.field(name, value, 0, value.length, size);
      } else if ((first & 0x40) !== 0) this.#literal(this.#integer(6), true, sink);
      else this.#literal(this.#integer(4), false, sink);
    }
    this.#octets = NO_OCTETS;
    this.#text = NO_OCTETS;
  }

  #literal(index: number, isKept: boolean, sink: FieldSink): void {
    let name: number;
    let nameLength: number;
    if (index === 0) {
      this.#readText();
      nameLength = this.#textEnd - this.#textStart;
      name = this.#isName() ? fieldNumber(this.#latin1()) : FieldName.FORBIDDEN;
    } else ({ name, nameLength } = this.#entry(index));
    this.#readText();
    if (!this.#isValue()) name = FieldName.FORBIDDEN;
    const [start, end] = [this.#textStart, this.#textEnd];
    const size = nameLength + end - start + ENTRY_OVERHEAD;
    sink.field(name, this.#text, start, end, size);
    if (!isKept) return;
    // A copy, because the octets of the text are lent.
    const value = name === FieldName.OTHER ? NO_OCTETS : copyOctets(this.#text, start, end);
    this.#add({ name, nameLength, value, size });
  }

  #add(entry: TableEntry): void {
    this.#evict(this.#limit - entry.size);
    // An entry larger than the table empties it (RFC 7541 section 4.4).
    if (entry.size > this.#limit) return;
    this.#entries[this.#next] = entry;
    this.#next = (this.#next + 1) % MAX_ENTRIES;
    this.#count++;
    this.#size += entry.size;
  }

  #resize(limit: number): void {
    if (limit > MAX_TABLE) throw new HpackError("table larger than allowed");
    this.#limit = limit;
    this.#evict(limit);
  }

  #evict(most: number): void {
    while (this.#count > 0 && this.#size > most) {
      this.#size -= this.#dynamic(this.#count - 1).size;
      this.#count--;
    }
  }

  /** @param age 0 for the newest */
  #dynamic(age: number): TableEntry {
    return this.#entries[(this.#next - 1 - age + MAX_ENTRIES) % MAX_ENTRIES] as TableEntry;
  }

  #entry(index: number): TableEntry {
    if (index > STATIC.length) {
      const age = index - STATIC.length - 1;
      if (age < this.#count) return this.#dynamic(age);
    } else if (index > 0) return STATIC[index - 1] as TableEntry;
    throw new HpackError("no such entry in the table");
  }

  /** @param prefix bits of the first octet that belong to it (RFC 7541 section 5.1) */
  #integer(prefix: number): number {
    const most = (1 << prefix) - 1;
    let value = this.#octet() & most;
    if (value < most) return value;
    // No valid length or index needs more than 28 bits.
    for (let shift = 0; shift <= 21; shift += 7) {
      const octet = this.#octet();
      value += (octet & 0x7f) << shift;
      if ((octet & 0x80) === 0) return value;
    }
    throw new HpackError("integer too large");
  }

  #octet(): number {
    if (this.#at >= this.#end) throw new HpackError("ends within a field");
    return this.#octets[this.#at++] as number;
  }

  #readText(): void {
    const isHuffman = ((this.#octets[this.#at] ?? 0) & 0x80) !== 0;
    const length = this.#integer(7);
    const start = this.#at;
    if (length > this.#end - start) throw new HpackError("ends within a field");
    this.#at = start + length;
    if (!isHuffman) {
      this.#text = this.#octets;
      this.#textStart = start;
      this.#textEnd = this.#at;
      return;
    }
    const decoded = decodeHuffmanInto(this.#octets, start, this.#at, this.#scratch, this.#scratchAt);
    if (decoded < 0) throw new HpackError("not the Huffman code of HTTP");
    this.#text = this.#scratch;
    this.#textStart = this.#scratchAt;
    this.#textEnd = decoded;
    this.#scratchAt = decoded;
  }

  /** Whether the text is a valid name: visible, lower case, a colon only at its start (RFC 9113 section 8.2.1). */
  #isName(): boolean {
    for (let at = this.#textStart; at < this.#textEnd; at++) {
      const octet = this.#text[at] as number;
      if (octet <= 0x20 || octet >= 0x7f || (octet >= 0x41 && octet <= 0x5a)) return false;
      if (octet === COLON && at > this.#textStart) return false;
    }
    return this.#textEnd > this.#textStart;
  }

  /** Whether the text is a valid value: no control characters. */
  #isValue(): boolean {
    for (let at = this.#textStart; at < this.#textEnd; at++) {
      const octet = this.#text[at] as number;
      if ((octet < 0x20 && octet !== TAB) || octet === 0x7f) return false;
    }
    return true;
  }

  #latin1(): string {
    return Buffer.from(
      this.#text.buffer,
      this.#text.byteOffset + this.#textStart,
      this.#textEnd - this.#textStart,
    ).toString("latin1");
  }
}

const COLON = 0x3a;
const TAB = 0x09;
