/** Records packed into a byte buffer: added or removed by a change of a zone. */
import { Name } from "../../dns/name.ts";
import { RecordClass } from "../../dns/numbers.ts";
import { octetAt, readU16, readU32, writeU16, writeU32 } from "../../dns/octets.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { dataFromWire } from "../../dns/resource-record.ts";
import { discard, OctetHeap } from "./octet-heap.ts";

/** A record as octets. */
export interface PlainRecord {
  /** Uncompressed. */
  readonly owner: Uint8Array;
  readonly type: number;
  readonly ttl: number;
  readonly rdata: Uint8Array;
}

/** Bytes added between two pauses. */
const COMING_OCTETS = 64 * 1024;
/** Length of the owner, type, TTL, length of RDATA. */
const HEAD = 9;

export class RecordLog {
  readonly #heap = new OctetHeap();
  count = 0;

  /** Bytes of memory. */
  get size(): number {
    return this.#heap.size;
  }

  /** In portions, so that no record has to move all others. */
  makeRoom(pause: () => Promise<void>): Promise<void> {
    return this.#heap.makeRoom(COMING_OCTETS, pause);
  }

  /** Frees the memory of an unused log. */
  discard(): void {
    this.count = 0;
    discard(this.#heap.clear());
  }

  /** Bytes of the records. */
  get used(): number {
    return this.#heap.used;
  }

  add(
    owner: Uint8Array,
    ownerLength: number,
    type: number,
    ttl: number,
    rdata: Uint8Array,
    at: number,
    length: number,
  ): void {
    const start = this.#heap.allocate(HEAD + ownerLength + length);
    const { bytes } = this.#heap;
    bytes[start] = ownerLength;
    writeU16(bytes, start + 1, type);
    writeU32(bytes, start + 3, ttl);
    writeU16(bytes, start + 7, length);
    for (let index = 0; index < ownerLength; index++) bytes[start + HEAD + index] = octetAt(owner, index);
    bytes.set(rdata.subarray(at, at + length), start + HEAD + ownerLength);
    this.count++;
  }

  addPlain({ owner, type, ttl, rdata }: PlainRecord): void {
    this.add(owner, owner.length, type, ttl, rdata, 0, rdata.length);
  }

  /** A copy of the bytes, for transfer to another thread; see {@link fromOctets}. */
  toOctets(): Uint8Array {
    return this.#heap.bytes.slice(0, this.#heap.used);
  }

  /** Wraps the result of {@link toOctets}. */
  static fromOctets(octets: Uint8Array): RecordLog {
    const log = new RecordLog();
    log.#heap.bytes = octets;
    log.#heap.allocate(octets.length);
    for (const _ of log) log.count++;
    return log;
  }

  /** The records as views of the log. */
  *[Symbol.iterator](): Generator<PlainRecord> {
    const { bytes, used } = this.#heap;
    for (let at = 0; at < used; ) {
      const owner = at + HEAD;
      const rdata = owner + octetAt(bytes, at);
      const end = rdata + readU16(bytes, at + 7);
      yield {
        owner: bytes.subarray(owner, rdata),
        type: readU16(bytes, at + 1),
        ttl: readU32(bytes, at + 3),
        rdata: bytes.subarray(rdata, end),
      };
      at = end;
    }
  }

  *records(): Generator<ResourceRecord> {
    for (const { owner, type, ttl, rdata } of this) {
      yield {
        name: Name.fromCheckedWire(owner.slice()),
        type,
        class: RecordClass.IN,
        ttl,
        data: dataFromWire(type, rdata.slice()),
      };
    }
  }
}
