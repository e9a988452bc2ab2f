/** Ticks off records of a zone: one bit per record. */
import { readU16 } from "../../dns/octets.ts";
import { discard } from "./octet-heap.ts";
import type { ZoneRecords } from "./zone-records.ts";

/** Records of an RRset that fit into a number's bits. */
const BITS = 32;

export class RecordMarks {
  readonly #records: ZoneRecords;
  /** By RRset; enough for most. */
  readonly #bits: Uint32Array;
  /** For larger RRsets. */
  readonly #large = new Map<number, Set<number>>();

  constructor(records: ZoneRecords) {
    this.#records = records;
    this.#bits = new Uint32Array(records.rrsetLimit);
  }

  /** @returns false if there is no such record with this TTL */
  mark(
    owner: Uint8Array,
    ownerLength: number,
    type: number,
    ttl: number,
    rdata: Uint8Array,
    length: number,
  ): boolean {
    const records = this.#records;
    const at = records.locate(owner, ownerLength, type, rdata, length);
    const rrset = records.located;
    if (at < 0 || records.ttl(rrset) !== ttl) return false;
    const { bytes } = records.heap;
    let index = 0;
    for (let place = records.data(rrset); place !== at; place += 2 + readU16(bytes, place)) index++;
    if (records.count(rrset) <= BITS) this.#bits[rrset] = (this.#bits[rrset] as number) | (1 << index);
    else {
      const marks = this.#large.get(rrset) ?? new Set();
      this.#large.set(rrset, marks.add(index));
    }
    return true;
  }

  /** Frees the memory of unused marks. */
  discard(): void {
    discard(this.#bits);
  }

  has(rrset: number, index: number): boolean {
    if (this.#records.count(rrset) > BITS) return this.#large.get(rrset)?.has(index) === true;
    return ((this.#bits[rrset] as number) & (1 << index)) !== 0;
  }
}
