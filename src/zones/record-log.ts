/** Records one after the other in a buffer of octets: what came or went in a change of a zone. */
import { Name } from "../dns/name.ts";
import { RecordClass } from "../dns/numbers.ts";
import { copyOctets, octetAt, readU16, readU32, writeU16, writeU32 } from "../dns/octets.ts";
import type { ResourceRecord } from "../dns/record-kind.ts";
import { dataFromWire } from "../dns/resource-record.ts";
import { OctetHeap } from "./octet-heap.ts";

/** Length of the owner, type, TTL, length of RDATA. */
const HEAD = 9;

export class RecordLog {
  readonly #heap = new OctetHeap();
  count = 0;

  /** Octets of memory. */
  get size(): number {
    return this.#heap.size;
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

  *records(): Generator<ResourceRecord> {
    const { bytes, used } = this.#heap;
    for (let at = 0; at < used; ) {
      const ownerLength = octetAt(bytes, at);
      const type = readU16(bytes, at + 1);
      const length = readU16(bytes, at + 7);
      const owner = at + HEAD;
      const rdata = owner + ownerLength;
      yield {
        name: Name.fromCheckedWire(copyOctets(bytes, owner, rdata)),
        type,
        class: RecordClass.IN,
        ttl: readU32(bytes, at + 3),
        data: dataFromWire(type, copyOctets(bytes, rdata, rdata + length)),
      };
      at = rdata + length;
    }
  }
}
