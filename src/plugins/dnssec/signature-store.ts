/**
 * A cache of signatures in one buffer without objects: slots of one size, found by the hash of the signed data. When
 * all slots are in use, a hand goes round and evicts signatures that were not used since its last pass.
 */

import { HashIndex } from "../../lib/collections/slab/hash-index.ts";
import { roundUp, SharedParts } from "../../lib/collections/slab/shared-parts.ts";
import { nodeCrypto } from "../../lib/files/node-modules.ts";

/** Octets of the hash in a slot; the first four select the bucket of the index. */
const DIGEST = 20;
/** After the digest: the signature's expiration, its length, and whether it was used. */
const HEAD = DIGEST + 8;

export class SignatureStore {
  readonly capacity: number;
  readonly #stride: number;
  readonly #octets: Uint8Array;
  readonly #view: DataView;
  readonly #index: HashIndex;
  /** Random in each process, so that no client can choose names that collide in the index. */
  readonly #seed: Uint8Array;
  #count = 0;
  #hand = 0;

  /** @param capacity signatures @param signatureOctets length of the longest signature */
  constructor(capacity: number, signatureOctets: number) {
    this.capacity = capacity;
    this.#stride = Math.ceil((HEAD + signatureOctets) / 4) * 4;
    const room = roundUp(capacity * this.#stride);
    const parts = new SharedParts(new SharedArrayBuffer(room + HashIndex.octetsFor(capacity)));
    this.#index = new HashIndex(parts, capacity);
    this.#octets = parts.octets(capacity * this.#stride);
    this.#view = new DataView(this.#octets.buffer, this.#octets.byteOffset, this.#octets.length);
    this.#seed = new Uint8Array(nodeCrypto().randomBytes(16));
  }

  get count(): number {
    return this.#count;
  }

  /** Bytes in use. */
  get size(): number {
    return this.#count * this.#stride;
  }

  /** The key of the records in {@link find} and {@link add}. @param keyTag of the key that signs */
  digest(records: Uint8Array, signer: Uint8Array, keyTag: number): Buffer {
    return nodeCrypto()
      .createHash("sha256")
      .update(this.#seed)
      .update(Uint8Array.of(keyTag >>> 8, keyTag & 0xff, signer.length))
      .update(signer)
      .update(records)
      .digest();
  }

  /** @returns the slot of the signature, -1 if it is not cached */
  find(digest: Buffer): number {
    const { pairs } = this.#index;
    const hash = digest.readInt32BE(0);
    for (let at = this.#index.first(hash); pairs[at + 1] !== 0; at = this.#index.next(at)) {
      if (pairs[at] !== hash) continue;
      const place = (pairs[at + 1] ?? 0) - 1;
      if (this.#holds(place, digest)) {
        this.#octets[place * this.#stride + HEAD - 1] = 1;
        return place;
      }
    }
    return -1;
  }

  /** Seconds since the epoch. */
  expiration(place: number): number {
    return this.#view.getUint32(place * this.#stride + DIGEST);
  }

  /** Returns a copy of the signature. */
  signature(place: number): Uint8Array {
    const start = place * this.#stride + HEAD;
    return this.#octets.slice(start, start + this.#view.getUint16(start - 4));
  }

  /** Stores a signature, replacing an older one for the same records. */
  add(digest: Buffer, signature: Uint8Array, expiration: number): void {
    let place = this.find(digest);
    if (place < 0) {
      place = this.#count < this.capacity ? this.#count++ : this.#evict();
      this.#index.add(digest.readInt32BE(0), place);
    }
    const start = place * this.#stride;
    this.#octets.set(digest.subarray(0, DIGEST), start);
    this.#view.setUint32(start + DIGEST, expiration);
    this.#view.setUint16(start + HEAD - 4, signature.length);
    this.#octets[start + HEAD - 1] = 0;
    this.#octets.set(signature, start + HEAD);
  }

  #holds(place: number, digest: Buffer): boolean {
    const start = place * this.#stride;
    for (let at = 0; at < DIGEST; at++) if (this.#octets[start + at] !== digest[at]) return false;
    return true;
  }

  #evict(): number {
    for (;;) {
      const place = this.#hand;
      this.#hand = (place + 1) % this.capacity;
      const start = place * this.#stride;
      if (this.#octets[start + HEAD - 1] === 1) {
        this.#octets[start + HEAD - 1] = 0;
        continue;
      }
      this.#index.remove(this.#view.getInt32(start), place);
      return place;
    }
  }
}
