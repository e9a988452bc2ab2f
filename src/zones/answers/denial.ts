/** Proofs that a name or a type does not exist: NSEC (RFC 4035 section 3.1.3) and NSEC3 (RFC 5155 section 7.2). */
import { hash } from "node:crypto";
import { FOLD, octetAt, readU16 } from "../../dns/octets.ts";
import { RecordType } from "../../dns/type-names.ts";
import { SHA1_OCTETS } from "../data/hashed-names.ts";
import { APEX, NO_NODE } from "../data/name-tree.ts";
import { NO_RRSET } from "../data/rrset-table.ts";
import type { Zone } from "../data/zone.ts";
import type { ZoneRecords } from "../data/zone-records.ts";
import { type AnswerWriter, Section } from "./answer-writer.ts";

/** A name with the places of its labels, as found by the walk through the zone. */
export interface WalkedName {
  /** Octets of the name, which begins at `offset`. */
  readonly bytes: Uint8Array;
  readonly offset: number;
  /** Start of each label after `offset`, leftmost first, without the labels of the apex. */
  readonly starts: Uint8Array;
  /** Labels below the apex. */
  readonly count: number;
  /** The last existing node on the way. */
  readonly closest: number;
  /** Number of the name's labels to the left of `closest`. */
  readonly missing: number;
}

/** RFC 9276 section 3.2: resolvers refuse more than about 100; a zone with more would only waste CPU time. */
const MAX_ITERATIONS = 500;
/** Proofs of one answer, each sent once. */
const MAX_PROOFS = 8;

export class Denial {
  readonly #zone: Zone;
  readonly #writer: AnswerWriter;
  readonly #proved = new Int32Array(MAX_PROOFS);
  #provedCount = 0;
  readonly #label = new Uint8Array(64);
  readonly #labelStart = new Uint8Array(1);
  readonly #name = new Uint8Array(256);
  /** For zones with NSEC3, and the version of the zone that it belongs to. */
  #chain: HashedChain | undefined;
  #version = 0;

  constructor(zone: Zone, writer: AnswerWriter) {
    this.#zone = zone;
    this.#writer = writer;
  }

  begin(): void {
    this.#provedCount = 0;
    if (this.#version === this.#zone.version) return;
    this.#version = this.#zone.version;
    this.#chain = undefined;
  }

  get #usesNsec3(): boolean {
    return this.#zone.nsec3.count > 0 && this.#zone.nsec.count === 0;
  }

  /** The node exists, the type does not. Also for a referral without DS. */
  typeMissing(node: number): undefined {
    if (this.#usesNsec3) {
      const match = this.#matching(node);
      if (match !== NO_NODE) return this.#proof(match);
      // The node lies in an opt-out span (RFC 5155 section 7.2.4), or is not in the chain: send the available proof.
      return this.#optedOut(node);
    }
    const { records } = this.#zone;
    if (records.rrset(node, RecordType.NSEC) !== NO_RRSET) return this.#proof(node);
    // An empty non-terminal has no NSEC of its own: the preceding one shows that there are no types.
    const length = this.#nameOf(node);
    this.#cover(this.#name, length);
  }

  /** The name does not exist, nor a wildcard that matches it. */
  nameMissing(name: WalkedName): void {
    if (this.#usesNsec3) {
      this.#closestEncloser(name);
      this.#proof(this.#wildcardCover(name.closest));
      return;
    }
    this.#coverWalked(name);
    const length = this.#nameOf(name.closest);
    this.#name.copyWithin(2, 0, length);
    this.#name[0] = 1;
    this.#name[1] = WILDCARD;
    this.#cover(this.#name, length + 2);
  }

  /** A wildcard matched the name, which does not exist itself. */
  expanded(name: WalkedName): void {
    if (this.#usesNsec3) this.#coverNextCloser(name);
    else this.#coverWalked(name);
  }

  /** A wildcard matched the name, and lacks the type. */
  wildcardTypeMissing(name: WalkedName, wildcard: number): void {
    if (!this.#usesNsec3) {
      this.#coverWalked(name);
      this.typeMissing(wildcard);
      return;
    }
    this.#closestEncloser(name);
    const match = this.#matching(wildcard);
    if (match !== NO_NODE) this.#proof(match);
  }

  #coverWalked(name: WalkedName): void {
    this.#proof(this.#zone.nsec.atOrBefore(name.bytes, name.starts, name.offset, name.count));
  }

  #cover(name: Uint8Array, length: number): void {
    const starts = wildcardStarts;
    let count = 0;
    const below = length - this.#zone.apex.wire.length;
    for (let at = 0; at < below; at += octetAt(name, at) + 1) starts[count++] = at;
    this.#proof(this.#zone.nsec.atOrBefore(name, starts, 0, count));
  }

  /** Writes the uncompressed name of a node to {@link #name}; returns its length. */
  #nameOf(node: number): number {
    const end = this.#zone.records.names.writeLabels(node, this.#name, 0);
    this.#name.set(this.#zone.apex.wire, end);
    return end + this.#zone.apex.wire.length;
  }

  #closestEncloser(name: WalkedName): void {
    const match = this.#matching(name.closest);
    if (match !== NO_NODE) this.#proof(match);
    this.#coverNextCloser(name);
  }

  /** RFC 5155 section 7.2.4: the closest encloser in the chain, and the cover of the next closer name. */
  #optedOut(node: number): undefined {
    const { names } = this.#zone.records;
    let closer = node;
    for (let at = node; at !== APEX; ) {
      at = names.parent(at);
      const match = this.#matching(at);
      if (match !== NO_NODE) {
        this.#proof(match);
        this.#proof(this.#nsec3Covering(this.#nameOf(closer)));
        return;
      }
      closer = at;
    }
  }

  #matching(node: number): number {
    const { matches } = this.#hashing();
    const known = matches.get(node);
    if (known !== undefined) return known;
    const isHashed = this.#hash(this.#nameOf(node));
    return matches.set(node, isHashed ? this.#zone.hashed.names.child(APEX, this.#label, 0) : NO_NODE);
  }

  #coverNextCloser(name: WalkedName): void {
    const { bytes, starts, offset, missing, count } = name;
    const index = missing - 1;
    if (index < 0 || count === 0) return;
    let length = 0;
    const end = offset + lastLabelEnd(name);
    for (let at = offset + octetAt(starts, index); at < end; at++)
      this.#name[length++] = octetAt(FOLD, octetAt(bytes, at));
    this.#name.set(this.#zone.apex.wire, length);
    this.#proof(this.#nsec3Covering(length + this.#zone.apex.wire.length));
  }

  #wildcardCover(closest: number): number {
    const { wildcards } = this.#hashing();
    const known = wildcards.get(closest);
    if (known !== undefined) return known;
    const length = this.#nameOf(closest);
    this.#name.copyWithin(2, 0, length);
    this.#name[0] = 1;
    this.#name[1] = WILDCARD;
    return wildcards.set(closest, this.#nsec3Covering(length + 2));
  }

  /** The NSEC3 record that covers or matches the name in {@link #name}. */
  #nsec3Covering(length: number): number {
    if (!this.#hash(length)) return NO_NODE;
    return this.#zone.nsec3.atOrBefore(this.#label, this.#labelStart, 0, 1);
  }

  /**
   * Hashes the name in {@link #name} with the parameters of the chain (RFC 5155 section 5), and writes the resulting label to
   * {@link #label}.
   * @returns false if resolvers do not check this chain
   */
  #hash(length: number): boolean {
    const { hashed, nsec3 } = this.#zone;
    const rrset = hashed.rrset(nsec3.at(0), RecordType.NSEC3);
    const { bytes } = hashed.heap;
    const at = hashed.data(rrset) + 2;
    const iterations = readU16(bytes, at + 2);
    if (octetAt(bytes, at) !== SHA1 || iterations > MAX_ITERATIONS) return false;
    const { message } = this.#hashing();
    for (let index = 0; index < length; index++) message[index] = octetAt(this.#name, index);
    let digest = hashSalted(message, length, bytes, at + 4);
    for (let left = iterations; left > 0; left--) {
      message.set(digest);
      digest = hashSalted(message, SHA1_OCTETS, bytes, at + 4);
    }
    this.#putLabel(digest);
    return true;
  }

  #hashing(): HashedChain {
    this.#chain ??= new HashedChain();
    return this.#chain;
  }

  /** In base32hex (RFC 4648 section 7), lower case: 20 octets are 32 characters. */
  #putLabel(digest: Uint8Array): void {
    const label = this.#label;
    label[0] = 32;
    let [bits, kept, to] = [0, 0, 1];
    for (let at = 0; at < SHA1_OCTETS; at++) {
      kept = ((kept << 8) | octetAt(digest, at)) & 0xfff;
      for (bits += 8; bits >= 5; bits -= 5) {
        const digit = (kept >>> (bits - 5)) & 31;
        label[to++] = digit < 10 ? ZERO + digit : SMALL_A + digit - 10;
      }
    }
  }

  /**
   * Remembers a node whose NSEC or NSEC3 must be sent, once. It is written later because the answer section may not be complete
   * yet.
   */
  #proof(node: number): undefined {
    if (node === NO_NODE) return undefined;
    for (let index = 0; index < this.#provedCount; index++)
      if (this.#proved[index] === node) return undefined;
    if (this.#provedCount < MAX_PROOFS) this.#proved[this.#provedCount++] = node;
  }

  /** Writes the remembered proofs, with signatures, to the authority section. */
  write(): void {
    const records = this.#usesNsec3 ? this.#zone.hashed : this.#zone.records;
    const type = this.#usesNsec3 ? RecordType.NSEC3 : RecordType.NSEC;
    for (let index = 0; index < this.#provedCount; index++) {
      const node = this.#proved[index] as number;
      this.#writeRrset(records, node, records.rrset(node, type));
      this.#writeRrset(records, node, records.signatures(node, type));
    }
  }

  #writeRrset(records: ZoneRecords, node: number, rrset: number): void {
    if (rrset >= 0) this.#writer.rrsetOfNode(Section.AUTHORITY, records, node, rrset, records.ttl(rrset));
  }
}

/** The state of hashing, and a cache of hashes. */
class HashedChain {
  /** Room for the longest name or a digest, and the longest salt. */
  readonly message: Uint8Array = new Uint8Array(512);
  /** NSEC3 records that match nodes, and those that cover their wildcards. */
  readonly matches = new NodeMemo();
  readonly wildcards = new NodeMemo();
}

/** A cache with a number for some nodes. A node in the same place replaces the old one. */
class NodeMemo {
  readonly #nodes = new Int32Array(PLACES).fill(NO_NODE);
  readonly #values = new Int32Array(PLACES);

  get(node: number): number | undefined {
    const place = node & (PLACES - 1);
    return this.#nodes[place] === node ? this.#values[place] : undefined;
  }

  /** @returns the value */
  set(node: number, value: number): number {
    const place = node & (PLACES - 1);
    this.#nodes[place] = node;
    this.#values[place] = value;
    return value;
  }
}

/** A power of two. */
const PLACES = 256;
const ZERO = 0x30;
const SMALL_A = 0x61;
const SHA1 = 1;

/** Hashes this many octets of the message with the salt whose length is at `bytes[at]`. */
function hashSalted(message: Uint8Array, length: number, bytes: Uint8Array, at: number): Uint8Array {
  const salt = octetAt(bytes, at);
  for (let index = 0; index < salt; index++) message[length + index] = octetAt(bytes, at + 1 + index);
  return hash("sha1", message.subarray(0, length + salt), "buffer");
}

const WILDCARD = 0x2a;
const wildcardStarts = new Uint8Array(128);

/** End of the labels below the apex, relative to the name's start. */
function lastLabelEnd({ bytes, starts, offset, count }: WalkedName): number {
  const last = octetAt(starts, count - 1);
  return last + octetAt(bytes, offset + last) + 1;
}
