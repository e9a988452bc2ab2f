/** Bounded reading of wire format (RFC 1035 section 4). No length or count of a packet is trusted. */
import { MAX_LABEL_OCTETS, MAX_NAME_OCTETS, Name } from "./name.ts";
import { copyOctets, octetAt, readU16, readU32 } from "./octets.ts";

/** The reasons why octets are not a message. */
export type WireErrorCode =
  | "SHORT_INPUT"
  | "BAD_LABEL"
  | "BAD_POINTER"
  | "NAME_TOO_LONG"
  | "BAD_RDATA"
  | "TRAILING_OCTETS"
  | "TOO_LARGE";

/** The only error that decoding throws. */
export class WireError extends Error {
  override readonly name = "WireError";
  readonly code: WireErrorCode;
  /** Offset in the message, in octets from its start. */
  readonly offset: number;

  constructor(code: WireErrorCode, offset: number, detail: string) {
    super(`${detail} at octet ${offset}`);
    this.code = code;
    this.offset = offset;
  }
}

/** Names begin after the header: no pointer leads to before it. */
export const FIRST_NAME_OFFSET = 12;

/** More pointers than labels are possible in one name only serve to keep a reader busy. */
export const MAX_POINTERS = 127;

/**
 * Octets of names, with all pointers followed, that a message may unpack to where its names are checked one by one: four times the
 * longest message. Thousands of records that point at one long name would otherwise cost much memory and time.
 */
export const MAX_UNPACKED_OCTETS = 4 * 65_536;

/** Reads the fields of a message, within bounds. */
export class WireReader {
  /** The whole message, since compression pointers count from its start. */
  readonly bytes: Uint8Array;
  offset: number;
  /** Reading past it is an error; RDATA sets it to its own end. */
  end: number;
  /** Octets of all names read so far, with pointers followed. */
  unpacked = 0;
  readonly #messageEnd: number;
  readonly #lowestTarget: number;

  /**
   * Reads `bytes[offset, end)`. Pointers may lead to `lowestTarget` and up; for octets outside of a message, `end` as lowest target
   * refuses all pointers.
   */
  constructor(
    bytes: Uint8Array,
    offset = 0,
    end: number = bytes.length,
    lowestTarget: number = FIRST_NAME_OFFSET,
  ) {
    this.bytes = bytes;
    this.offset = offset;
    this.end = end;
    this.#messageEnd = end;
    this.#lowestTarget = lowestTarget;
  }

  get remaining(): number {
    return this.end - this.offset;
  }

  u8(): number {
    const at = this.#take(1);
    return octetAt(this.bytes, at);
  }

  u16(): number {
    return readU16(this.bytes, this.#take(2));
  }

  u32(): number {
    return readU32(this.bytes, this.#take(4));
  }

  /** 48 bits fit a double exactly. */
  u48(): number {
    const high = this.u16();
    return high * 0x1_0000_0000 + this.u32();
  }

  u64(): bigint {
    const high = this.u32();
    return (BigInt(high) << 32n) | BigInt(this.u32());
  }

  /** A copy, so that the result outlives the packet. */
  octets(length: number): Uint8Array {
    const at = this.#take(length);
    return copyOctets(this.bytes, at, at + length);
  }

  skip(length: number): void {
    this.#take(length);
  }

  rest(): Uint8Array {
    return this.octets(this.remaining);
  }

  /** A length octet and that many octets (RFC 1035 section 3.3). */
  characterString(): Uint8Array {
    return this.octets(this.u8());
  }

  /** A name; `compressed` is whether pointers are allowed. */
  name(compressed = true): Name {
    const length = this.#walkName(compressed);
    return Name.fromCheckedWire(NAME_SCRATCH.slice(0, length));
  }

  /** Skips a name, with the checks of reading it. */
  checkName(compressed = true): void {
    this.#walkName(compressed);
  }

  /** @throws WireError if names unpack to more than `MAX_UNPACKED_OCTETS` */
  checkUnpacked(): void {
    if (this.unpacked > MAX_UNPACKED_OCTETS)
      throw new WireError("TOO_LARGE", this.offset, `names of more than ${MAX_UNPACKED_OCTETS} octets`);
  }

  /** Skips a name without following its pointers. */
  skipName(): void {
    const { bytes, end } = this;
    let at = this.offset;
    for (;;) {
      if (at >= end) throw new WireError("SHORT_INPUT", at, "name runs past the end");
      const octet = octetAt(bytes, at);
      if (octet === 0) {
        this.offset = at + 1;
        return;
      }
      if (octet >= 0xc0) {
        if (at + 2 > end) throw new WireError("SHORT_INPUT", at, "pointer runs past the end");
        this.offset = at + 2;
        return;
      }
      if (octet > MAX_LABEL_OCTETS) throw new WireError("BAD_LABEL", at, "label of an unknown kind");
      at += octet + 1;
    }
  }

  /** An error at the current position, for a codec that finds invalid RDATA. */
  bad(detail: string): WireError {
    return new WireError("BAD_RDATA", this.offset, detail);
  }

  /**
   * Copies a name in full to the scratch buffer and returns its length. Every pointer must lead to before the piece of name that
   * holds it, so the walk ends; the number of pointers and of octets is limited, so it ends soon.
   */
  #walkName(compressed: boolean): number {
    const { bytes } = this;
    let length = 0;
    let pointers = 0;
    let at = this.offset;
    let pieceStart = at;
    let limit = this.end;
    for (;;) {
      if (at >= limit) throw new WireError("SHORT_INPUT", at, "name runs past the end");
      const octet = octetAt(bytes, at);
      if (octet === 0) {
        NAME_SCRATCH[length++] = 0;
        this.unpacked += length;
        if (pointers === 0) this.offset = at + 1;
        return length;
      }
      if (octet <= MAX_LABEL_OCTETS) {
        if (at + 1 + octet > limit) throw new WireError("SHORT_INPUT", at, "label runs past the end");
        if (length + octet + 2 > MAX_NAME_OCTETS)
          throw new WireError("NAME_TOO_LONG", at, "name longer than 255 octets");
        for (let i = 0; i <= octet; i++) NAME_SCRATCH[length++] = octetAt(bytes, at + i);
        at += octet + 1;
        continue;
      }
      if (octet < 0xc0) throw new WireError("BAD_LABEL", at, "label of an unknown kind");
      if (!compressed) throw new WireError("BAD_POINTER", at, "compression pointer where none is allowed");
      if (at + 2 > limit) throw new WireError("SHORT_INPUT", at, "pointer runs past the end");
      const target = readU16(bytes, at) & 0x3fff;
      if (target >= pieceStart || target < this.#lowestTarget)
        throw new WireError("BAD_POINTER", at, "compression pointer does not lead back to a name");
      if (++pointers > MAX_POINTERS) throw new WireError("BAD_POINTER", at, "too many compression pointers");
      if (pointers === 1) {
        this.offset = at + 2;
        limit = this.#messageEnd;
      }
      at = target;
      pieceStart = target;
    }
  }

  #take(length: number): number {
    const at = this.offset;
    if (length > this.end - at) throw new WireError("SHORT_INPUT", at, "input ends too early");
    this.offset = at + length;
    return at;
  }
}

/** Filled and copied within one synchronous call, so one buffer serves all readers. */
const NAME_SCRATCH = new Uint8Array(MAX_NAME_OCTETS);
