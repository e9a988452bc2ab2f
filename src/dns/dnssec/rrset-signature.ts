/** Signatures over RRsets (RFC 4034 section 3.1.8.1). */
import { nodeCrypto } from "../../lib/files/node-modules.ts";
import type { Name } from "../name.ts";
import { writeU16, writeU32 } from "../octets.ts";
import type { DataOf, ResourceRecord } from "../record-kind.ts";
import { RRSIG } from "../record-table.ts";
import { canonicalData } from "../resource-record.ts";
import type { KeyPair } from "./key-pair.ts";

/** Fields of the RRSIG record. Times are seconds since the epoch. */
export interface SignatureFacts {
  readonly signer: Name;
  readonly originalTtl: number;
  readonly inception: number;
  readonly expiration: number;
}

export type SignatureData = DataOf<typeof RRSIG>;

/**
 * The records in the form to sign: canonical form and order, without duplicates, with this TTL.
 * @param rrset records of one owner, class and type; at least one
 */
export function canonicalRrset(rrset: readonly ResourceRecord[], originalTtl: number): Uint8Array {
  const [first] = rrset;
  if (first === undefined) throw new RangeError("no records");
  const owner = first.name.folded;
  const data = rrset.map(canonicalData);
  if (data.length > 1) data.sort((one, other) => Buffer.compare(one, other));
  const different = data.filter(
    (octets, at) => at === 0 || Buffer.compare(octets, data[at - 1] ?? octets) !== 0,
  );
  const length = different.reduce((sum, octets) => sum + owner.length + 10 + octets.length, 0);
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const octets of different) {
    bytes.set(owner, at);
    at += owner.length;
    writeU16(bytes, at, first.type);
    writeU16(bytes, at + 2, first.class);
    writeU32(bytes, at + 4, originalTtl);
    writeU16(bytes, at + 8, octets.length);
    bytes.set(octets, at + 10);
    at += 10 + octets.length;
  }
  return bytes;
}

/** The RRSIG record of an RRset, with an existing signature. */
export function signatureRecord(
  rrset: readonly ResourceRecord[],
  key: KeyPair,
  facts: SignatureFacts,
  signature: Uint8Array,
): ResourceRecord<SignatureData> {
  const [first] = rrset;
  if (first === undefined) throw new RangeError("no records");
  return RRSIG.create(first.name, first.ttl, { ...signatureData(first, key, facts), signature }, first.class);
}

function signatureData(
  { name, type }: ResourceRecord,
  key: KeyPair,
  facts: SignatureFacts,
): Omit<SignatureData, "signature"> {
  return {
    typeCovered: type,
    algorithm: key.algorithm.number,
    labels: name.labelCount - (name.isWildcard ? 1 : 0),
    originalTtl: facts.originalTtl,
    expiration: facts.expiration,
    inception: facts.inception,
    keyTag: key.tag,
    signerName: facts.signer,
  };
}

/**
 * Makes a signature on a thread of libuv's pool.
 * @param records the result of {@link canonicalRrset}
 * @param done called in a later turn of the event loop, with the signature or an error
 */
export function beginSignature(
  rrset: readonly ResourceRecord[],
  records: Uint8Array,
  key: KeyPair,
  facts: SignatureFacts,
  done: (error: Error | null, signature: Uint8Array) => void,
): void {
  const [first] = rrset;
  if (first === undefined) throw new RangeError("no records");
  const head = canonicalData(
    RRSIG.create(first.name, 0, { ...signatureData(first, key, facts), signature: new Uint8Array(0) }),
  );
  const octets = new Uint8Array(head.length + records.length);
  octets.set(head);
  octets.set(records, head.length);
  const { hash } = key.algorithm;
  nodeCrypto().sign(hash, octets, { key: key.privateKey, dsaEncoding: "ieee-p1363" }, done);
}

/** `beginSignature` with a promise. */
export function signRrset(
  rrset: readonly ResourceRecord[],
  records: Uint8Array,
  key: KeyPair,
  facts: SignatureFacts,
): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  beginSignature(rrset, records, key, facts, (error, signature) => {
    if (error === null) resolve(signature);
    else reject(error);
  });
  return promise;
}

/** Groups records of one section into RRsets, in the order of their first records. */
export function rrsetsOf(records: readonly ResourceRecord[]): ResourceRecord[][] {
  const sets: ResourceRecord[][] = [];
  for (const record of records) {
    const set = sets.find(
      ([first]) =>
        first !== undefined &&
        first.type === record.type &&
        first.class === record.class &&
        first.name.equals(record.name),
    );
    if (set === undefined) sets.push([record]);
    else set.push(record);
  }
  return sets;
}
