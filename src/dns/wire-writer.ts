/** Writes wire format into a growing buffer, with name compression (RFC 1035 section 4.1.4). */
import { hashName, type Name } from "./name.ts";
import { NamePlaces } from "./name-places.ts";
import { FOLD, octetAt, readU16, writeU16, writeU32 } from "./octets.ts";
import { WireError } from "./wire-reader.ts";

export const MAX_MESSAGE_OCTETS = 65535;

/** A compression pointer has 14 bits. */
const MAX_POINTER = 0x3fff;

/** Below this, a loop copies faster than a call. */
const SHORT = 64;

/** Writes the fields of a message, with compressed names. */
export class WireWriter {
  bytes: Uint8Array;
  offset = 0;
  /** Writing past it throws TOO_LARGE. */
  readonly limit: number;
  /** True while RDATA is written in canonical form (RFC 4034 section 6.2): lower case, nothing compressed. */
  readonly canonical: boolean;
  /** Offsets of names, by the hash of each of their suffixes. */
  readonly #suffixes: NamePlaces | undefined;
  /** A name whose suffixes are not added yet, and its offset: most answers never look them up. */
  #latest: Name | undefined;
  #latestAt = 0;
  /** The number of its octets that were written. */
  #latestEnd = 0;

  constructor(options: { capacity?: number; limit?: number; canonical?: boolean; compress?: boolean } = {}) {
    this.bytes = new Uint8Array(options.capacity ?? 512);
    this.limit = options.limit ?? MAX_MESSAGE_OCTETS;
    this.canonical = options.canonical ?? false;
    this.#suffixes = options.compress === false || this.canonical ? undefined : new NamePlaces();
  }

  u8(value: number): void {
    this.reserve(1);
    this.bytes[this.offset++] = value;
  }

  u16(value: number): void {
    this.reserve(2);
    writeU16(this.bytes, this.offset, value);
    this.offset += 2;
  }

  u32(value: number): void {
    this.reserve(4);
    writeU32(this.bytes, this.offset, value);
    this.offset += 4;
  }

  u48(value: number): void {
    this.u16(Math.floor(value / 0x1_0000_0000));
    this.u32(value % 0x1_0000_0000);
  }

  u64(value: bigint): void {
    this.u32(Number(value >> 32n));
    this.u32(Number(value & 0xffffffffn));
  }

  octets(octets: Uint8Array): void {
    if (octets.length <= SHORT) {
      this.#shortOctets(octets, octets.length);
      return;
    }
    this.reserve(octets.length);
    this.bytes.set(octets, this.offset);
    this.offset += octets.length;
  }

  /** @throws RangeError if the octets are too many for a character string */
  characterString(octets: Uint8Array): void {
    if (octets.length > 255)
      throw new RangeError(`a character string holds 255 octets, not ${octets.length}`);
    this.u8(octets.length);
    this.octets(octets);
  }

  /**
   * Writes a name; `compress` is whether its RDATA type allows compression (RFC 3597 section 4). Even a name written in full is
   * remembered, so that later names may point to it.
   * `keepSpelling` lets a name share only suffixes with the same spelling, so that case survives (RFC 1035 section 2.3.3); without
   * it a name may take the case of the name that it points to, as owners take that of the question.
   */
  name(name: Name, compress = true, keepSpelling = false): void {
    const wire = this.canonical ? name.folded : name.wire;
    const suffixes = this.#suffixes;
    if (suffixes === undefined || wire.length === 1) {
      this.octets(wire);
      return;
    }
    const start = this.offset;
    const whole = suffixes.find(name.hash);
    if (compress && whole >= 0 && this.#suffixStandsAt(whole, wire, 0, keepSpelling)) {
      this.u16(0xc000 | whole);
      return;
    }
    this.#noteLatest(suffixes);
    let end = 0;
    let known = suffixes.find(name.hash);
    if (known < 0 && start <= MAX_POINTER) suffixes.add(name.hash, start);
    while (!(compress && known >= 0 && this.#suffixStandsAt(known, wire, end, keepSpelling))) {
      end += octetAt(wire, end) + 1;
      if (octetAt(wire, end) === 0) break;
      known = suffixes.find(hashName(name.folded, end, wire.length));
    }
    this.#latest = name;
    this.#latestAt = start;
    this.#latestEnd = end;
    const isWhole = octetAt(wire, end) === 0;
    this.#shortOctets(wire, isWhole ? wire.length : end);
    if (!isWhole) this.u16(0xc000 | known);
  }

  /** Leaves room for a 16-bit length and returns its offset for {@link closeLength}. */
  openLength(): number {
    this.u16(0);
    return this.offset;
  }

  closeLength(start: number): void {
    writeU16(this.bytes, start - 2, this.offset - start);
  }

  /** Removes everything from `offset` on, including names remembered since then. */
  rewind(offset: number): void {
    this.offset = offset;
    this.#suffixes?.dropFrom(offset);
    if (this.#latestAt >= offset) this.#latest = undefined;
  }

  finish(): Uint8Array {
    return this.bytes.subarray(0, this.offset);
  }

  reserve(length: number): void {
    const needed = this.offset + length;
    if (needed > this.limit)
      throw new WireError("TOO_LARGE", this.offset, `message larger than ${this.limit} octets`);
    if (needed <= this.bytes.length) return;
    const grown = new Uint8Array(Math.min(this.limit, Math.max(needed, this.bytes.length * 2)));
    grown.set(this.bytes.subarray(0, this.offset));
    this.bytes = grown;
  }

  /** The first ones, without a view or a call into the engine. */
  #shortOctets(octets: Uint8Array, length: number): void {
    this.reserve(length);
    const { bytes, offset } = this;
    for (let at = 0; at < length; at++) bytes[offset + at] = octetAt(octets, at);
    this.offset = offset + length;
  }

  #noteLatest(suffixes: NamePlaces): void {
    const name = this.#latest;
    if (name === undefined) return;
    this.#latest = undefined;
    const { folded } = name;
    for (let at = octetAt(folded, 0) + 1; at < this.#latestEnd; at += octetAt(folded, at) + 1) {
      const hash = hashName(folded, at, folded.length);
      const place = this.#latestAt + at;
      if (place <= MAX_POINTER && suffixes.find(hash) < 0) suffixes.add(hash, place);
    }
  }

  /** Hashes may collide; the octets decide. `place` is the start of a label written by this writer. */
  #suffixStandsAt(place: number, wire: Uint8Array, from: number, keepSpelling: boolean): boolean {
    const { bytes } = this;
    let at = place;
    for (let i = from; ; ) {
      let length = octetAt(bytes, at);
      if (length >= 0xc0) {
        at = readU16(bytes, at) & MAX_POINTER;
        length = octetAt(bytes, at);
      }
      if (length !== octetAt(wire, i)) return false;
      if (length === 0) return true;
      for (let k = 1; k <= length; k++) {
        const there = octetAt(bytes, at + k);
        const here = octetAt(wire, i + k);
        if (there !== here && (keepSpelling || octetAt(FOLD, there) !== octetAt(FOLD, here))) return false;
      }
      at += length + 1;
      i += length + 1;
    }
  }
}
