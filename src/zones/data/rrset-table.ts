/** RRsets as numbers: the fields of each are adjacent in one typed array. */
import { copied, grown, grownLength, moved, reserved, trimmed } from "./octet-heap.ts";

export const NO_RRSET = -1;

const int32 = (length: number): Int32Array => new Int32Array(length);
const TYPE = 0;
const TTL = 1;
const NEXT = 2;
const DATA = 3;
const EXTENT = 4;
const FIELDS = 5;
/**
 * A flag in EXTENT beside size and count: the data have room up to the next power of two. A count has 15 bits, because each record
 * takes at least two octets.
 */
export const PADDED = 0x8000_0000;

/**
 * The base of `ZoneRecords`, which links RRsets to nodes. One object for both, because each step to another object is a cache miss.
 */
export class RrsetTable {
  /**
   * Five numbers for each RRset. TYPE: the type, and above it, for RRSIG, the covered type: signatures of each type are a separate
   * RRset. EXTENT: bytes of data, and above it the number of records.
   */
  #rrsets = int32(8 * FIELDS);
  #used = 0;
  #free = NO_RRSET;

  /** RRsets have numbers below it. */
  get rrsetLimit(): number {
    return this.#used;
  }

  /** The next RRset of the same name. */
  next(rrset: number): number {
    return this.#rrsets[rrset * FIELDS + NEXT] as number;
  }

  /** Type and covered type; see {@link kindOf}. */
  kind(rrset: number): number {
    return this.#rrsets[rrset * FIELDS + TYPE] as number;
  }

  type(rrset: number): number {
    return (this.#rrsets[rrset * FIELDS + TYPE] as number) & 0xffff;
  }

  /** The type that signatures cover, 0 for other RRsets. */
  covered(rrset: number): number {
    return (this.#rrsets[rrset * FIELDS + TYPE] as number) >>> 16;
  }

  /** Seconds. */
  ttl(rrset: number): number {
    return (this.#rrsets[rrset * FIELDS + TTL] as number) >>> 0;
  }

  /** Records of the RRset. */
  count(rrset: number): number {
    return ((this.#rrsets[rrset * FIELDS + EXTENT] as number) >>> 16) & 0x7fff;
  }

  /** Offset of the first record in the heap: its length in two bytes, then RDATA; the next one follows. */
  data(rrset: number): number {
    return (this.#rrsets[rrset * FIELDS + DATA] as number) >>> 0;
  }

  dataSize(rrset: number): number {
    return (this.#rrsets[rrset * FIELDS + EXTENT] as number) & 0xffff;
  }

  protected setNext(rrset: number, next: number): void {
    this.#rrsets[rrset * FIELDS + NEXT] = next;
  }

  protected setTtl(rrset: number, ttl: number): void {
    this.#rrsets[rrset * FIELDS + TTL] = ttl;
  }

  protected setData(rrset: number, at: number): void {
    this.#rrsets[rrset * FIELDS + DATA] = at;
  }

  /** PADDED or 0. */
  protected padding(rrset: number): number {
    return (this.#rrsets[rrset * FIELDS + EXTENT] as number) & PADDED;
  }

  protected setExtent(rrset: number, size: number, count: number, padding: number): void {
    this.#rrsets[rrset * FIELDS + EXTENT] = padding | (count << 16) | size;
  }

  /** Bytes of the heap that belong to the RRset. */
  protected capacity(rrset: number): number {
    const size = this.dataSize(rrset);
    return this.padding(rrset) === 0 ? size : powerOfTwo(size);
  }

  protected newRrset(kind: number, ttl: number): number {
    let rrset = this.#free;
    if (rrset !== NO_RRSET) this.#free = this.next(rrset);
    else {
      if ((this.#used + 1) * FIELDS > this.#rrsets.length) this.#rrsets = grown(this.#rrsets, int32);
      rrset = this.#used++;
    }
    const at = rrset * FIELDS;
    this.#rrsets[at + TYPE] = kind;
    this.#rrsets[at + TTL] = ttl;
    this.#rrsets[at + NEXT] = NO_RRSET;
    return rrset;
  }

  /** Another RRset with the same data, without a next one. */
  protected twinOf(rrset: number): number {
    const twin = this.newRrset(this.kind(rrset), this.ttl(rrset));
    const from = rrset * FIELDS;
    this.#rrsets[twin * FIELDS + DATA] = this.#rrsets[from + DATA] as number;
    this.#rrsets[twin * FIELDS + EXTENT] = this.#rrsets[from + EXTENT] as number;
    return twin;
  }

  /** The number is reused for a later RRset. */
  protected freeRrset(rrset: number): void {
    this.setNext(rrset, this.#free);
    this.#free = rrset;
  }

  /** Bytes of memory. */
  protected get tableSize(): number {
    return this.#rrsets.length * 4;
  }

  protected get tableUsed(): number {
    return this.#used * FIELDS * 4;
  }

  /** RRsets that can be added before anything has to be moved. */
  protected get tableRoom(): number {
    return Math.floor(this.#rrsets.length / FIELDS) - this.#used;
  }

  /** The table must not change until the promise resolves. */
  protected async trimTable(pause: () => Promise<void>): Promise<void> {
    this.#rrsets = await trimmed(this.#rrsets, this.#used * FIELDS, int32, pause);
  }

  protected async makeTableRoom(rrsets: number, pause: () => Promise<void>): Promise<void> {
    const needed = (this.#used + rrsets) * FIELDS;
    const length = grownLength(this.#rrsets, needed);
    if (needed > this.#rrsets.length)
      this.#rrsets = await moved(this.#rrsets, this.#used * FIELDS, int32, pause, length);
  }

  protected reserveTableAs(other: RrsetTable): void {
    this.#rrsets = reserved(this.#rrsets, other.#used * FIELDS, int32);
  }

  protected async copyTableOf(other: RrsetTable, pause: () => Promise<void>): Promise<void> {
    this.#rrsets = await copied(other.#rrsets, other.#used * FIELDS, int32, pause);
    this.#used = other.#used;
    this.#free = other.#free;
  }

  /** Removes all RRsets. @returns the array to discard */
  protected clearTable(): Int32Array {
    const former = this.#rrsets;
    this.#rrsets = int32(8 * FIELDS);
    this.#used = 0;
    this.#free = NO_RRSET;
    return former;
  }
}

export function powerOfTwo(size: number): number {
  return 1 << (32 - Math.clz32(size - 1));
}

export function kindOf(type: number, covered: number): number {
  return type | (covered << 16);
}
