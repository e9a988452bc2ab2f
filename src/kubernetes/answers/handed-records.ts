/** The records of a zone as they were handed out last, service by service: what changed since then is found without keeping the cluster twice. */
import { octetAt, readU16, readU32, writeU16, writeU32 } from "../../dns/octets.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { plainData } from "../../dns/resource-record.ts";
import { OctetHeap } from "../../zones/data/octet-heap.ts";
import type { RecordLog } from "../../zones/data/record-log.ts";

/** Length of the owner, type, TTL, length of RDATA. */
const HEAD = 9;
/** In front of the records of a service: their octets. */
const LENGTH = 4;
/** Records of a portion: about a millisecond. */
const PORTION = 500;
const LEAST_GARBAGE = 256 * 1024;

export class HandedRecords {
  #heap = new OctetHeap(4_096);
  /** Where the records of a service stand, by its key. */
  readonly #places = new Map<string, number>();

  /** Octets of memory, but for the keys, which are the cluster's. */
  get size(): number {
    return this.#heap.size + this.#places.size * 16;
  }

  keys(): IterableIterator<string> {
    return this.#places.keys();
  }

  /** @param key of a service that is not there yet */
  put(key: string, records: readonly ResourceRecord[]): void {
    const texts = new Set<string>();
    for (const record of records) texts.add(encoded(record));
    this.#store(key, texts);
  }

  /** Puts the records of a service in place of those that are there, and logs what came and went. */
  async replace(
    key: string,
    records: readonly ResourceRecord[],
    logs: { readonly removed: RecordLog; readonly added: RecordLog },
    pause: () => Promise<void>,
  ): Promise<void> {
    const before = this.#read(key);
    const after = new Set<string>();
    let work = 0;
    for (const record of records) {
      if (++work % PORTION === 0) await pause();
      const text = encoded(record);
      if (after.has(text)) continue;
      after.add(text);
      if (!before.delete(text)) log(logs.added, text);
    }
    for (const text of before) log(logs.removed, text);
    this.#remove(key);
    this.#store(key, after);
    const { garbage, used } = this.#heap;
    if (garbage > LEAST_GARBAGE && garbage > used / 2) await this.#compact(pause);
  }

  #read(key: string): Set<string> {
    const texts = new Set<string>();
    const place = this.#places.get(key);
    if (place === undefined) return texts;
    const { bytes } = this.#heap;
    const end = place + LENGTH + readU32(bytes, place);
    for (let at = place + LENGTH; at < end; ) {
      const length = HEAD + octetAt(bytes, at) + readU16(bytes, at + 7);
      texts.add(Buffer.from(bytes.buffer, bytes.byteOffset + at, length).toString("latin1"));
      at += length;
    }
    return texts;
  }

  #remove(key: string): void {
    const place = this.#places.get(key);
    if (place === undefined) return;
    this.#heap.waste(LENGTH + readU32(this.#heap.bytes, place));
    this.#places.delete(key);
  }

  #store(key: string, texts: ReadonlySet<string>): void {
    if (texts.size === 0) return;
    let length = 0;
    for (const text of texts) length += text.length;
    let at = this.#heap.allocate(LENGTH + length);
    this.#places.set(key, at);
    const { bytes } = this.#heap;
    writeU32(bytes, at, length);
    at += LENGTH;
    for (const text of texts) {
      for (let index = 0; index < text.length; index++) bytes[at++] = text.charCodeAt(index);
    }
  }

  async #compact(pause: () => Promise<void>): Promise<void> {
    const from = this.#heap;
    const to = new OctetHeap(from.used - from.garbage);
    let work = 0;
    for (const [key, place] of this.#places) {
      if (++work % PORTION === 0) await pause();
      const length = LENGTH + readU32(from.bytes, place);
      const at = to.allocate(length);
      to.bytes.set(from.bytes.subarray(place, place + length), at);
      this.#places.set(key, at);
    }
    this.#heap = to;
  }
}

/** A record as octets, a character each. */
function encoded(record: ResourceRecord): string {
  const { wire } = record.name;
  const data = plainData(record);
  const octets = Buffer.allocUnsafe(HEAD + wire.length + data.length);
  octets[0] = wire.length;
  writeU16(octets, 1, record.type);
  writeU32(octets, 3, record.ttl);
  writeU16(octets, 7, data.length);
  octets.set(wire, HEAD);
  octets.set(data, HEAD + wire.length);
  return octets.toString("latin1");
}

function log(to: RecordLog, text: string): void {
  const octets = Buffer.from(text, "latin1");
  const data = HEAD + octetAt(octets, 0);
  const owner = octets.subarray(HEAD, data);
  to.add(owner, owner.length, readU16(octets, 1), readU32(octets, 3), octets, data, octets.length - data);
}
