/** The TSIG record of a message, and its MAC (RFC 8945 sections 4.2 and 4.3). */
import { nodeCrypto } from "../../lib/files/node-modules.ts";
import type { Name } from "../name.ts";
import { RecordClass } from "../numbers.ts";
import { copyOctets, readU16, writeU16 } from "../octets.ts";
import { RecordType } from "../type-names.ts";
import { WireError, WireReader } from "../wire-reader.ts";
import { WireWriter } from "../wire-writer.ts";
import type { TsigAlgorithm } from "./algorithms.ts";

/** The fields of a record, not verified. */
export interface TsigSignature {
  /** Name of the key, in the sender's spelling. */
  readonly key: Name;
  readonly algorithm: Name;
  /** Seconds since the epoch. */
  readonly timeSigned: number;
  /** Seconds that the clocks may differ. */
  readonly fudge: number;
  readonly mac: Uint8Array;
  readonly originalId: number;
  readonly error: number;
  readonly otherData: Uint8Array;
}

/** Seconds that clocks may differ, as RFC 8945 section 10 recommends. */
export const TSIG_FUDGE = 300;

/**
 * @param offset start of the record's owner
 * @returns `undefined` for a record with another class or TTL than TSIG requires
 * @throws WireError for a malformed record
 */
export function readSignature(bytes: Uint8Array, offset: number, length: number): TsigSignature | undefined {
  const reader = new WireReader(bytes, offset, length);
  const key = reader.name();
  const type = reader.u16();
  const recordClass = reader.u16();
  const ttl = reader.u32();
  const end = reader.u16() + reader.offset;
  if (type !== RecordType.TSIG || recordClass !== RecordClass.ANY || ttl !== 0 || end !== length)
    return undefined;
  const algorithm = reader.name(false);
  const timeSigned = reader.u48();
  const fudge = reader.u16();
  const mac = reader.octets(reader.u16());
  const originalId = reader.u16();
  const error = reader.u16();
  const otherData = reader.octets(reader.u16());
  if (reader.offset !== end) throw new WireError("BAD_RDATA", reader.offset, "octets after a TSIG record");
  return { key, algorithm, timeSigned, fudge, mac, originalId, error, otherData };
}

/** Octets of the record, its owner not compressed. */
export function signatureLength(key: Name, algorithm: Name, macOctets: number, otherOctets: number): number {
  return key.wire.length + 10 + algorithm.wire.length + 16 + macOctets + otherOctets;
}

/**
 * Appends the record to a message and counts it in the header.
 * @returns the new length
 */
export function appendSignature(bytes: Uint8Array, length: number, signature: TsigSignature): number {
  const { key, algorithm, mac, otherData } = signature;
  const writer = new WireWriter({
    capacity: signatureLength(key, algorithm, mac.length, otherData.length),
    compress: false,
  });
  writer.name(key, false, true);
  writer.u16(RecordType.TSIG);
  writer.u16(RecordClass.ANY);
  writer.u32(0);
  writer.u16(algorithm.wire.length + 16 + mac.length + otherData.length);
  writer.name(algorithm, false, true);
  writer.u48(signature.timeSigned);
  writer.u16(signature.fudge);
  writer.u16(mac.length);
  writer.octets(mac);
  writer.u16(signature.originalId);
  writer.u16(signature.error);
  writer.u16(otherData.length);
  writer.octets(otherData);
  const record = writer.finish();
  bytes.set(record, length);
  writeU16(bytes, 10, readU16(bytes, 10) + 1);
  return length + record.length;
}

/** The message as it was signed: without the record, under its original id (RFC 8945 section 4.3.2). */
export function unsignedMessage(bytes: Uint8Array, offset: number, originalId: number): Uint8Array {
  const message = copyOctets(bytes, 0, offset);
  writeU16(message, 0, originalId);
  writeU16(message, 10, readU16(message, 10) - 1);
  return message;
}

/** RFC 8945 section 4.3.3: names in lower case. */
export function signedVariables(signature: Omit<TsigSignature, "mac" | "originalId">): Uint8Array {
  const { otherData } = signature;
  const key = signature.key.toLowerCase();
  const algorithm = signature.algorithm.toLowerCase();
  const writer = new WireWriter({ capacity: 64 + key.wire.length + otherData.length, compress: false });
  writer.name(key, false, true);
  writer.u16(RecordClass.ANY);
  writer.u32(0);
  writer.name(algorithm, false, true);
  writer.u48(signature.timeSigned);
  writer.u16(signature.fudge);
  writer.u16(signature.error);
  writer.u16(otherData.length);
  writer.octets(otherData);
  return writer.finish();
}

/** The part of the variables that is signed with the second and later messages of an answer (RFC 8945 section 5.3.1). */
export function signedTimers({ timeSigned, fudge }: { timeSigned: number; fudge: number }): Uint8Array {
  return u48AndU16(timeSigned, fudge);
}

/** An earlier MAC as input of the next one: with its length before it (RFC 8945 section 4.3.1). */
export function withLength(mac: Uint8Array): Uint8Array {
  const octets = new Uint8Array(2 + mac.length);
  writeU16(octets, 0, mac.length);
  octets.set(mac, 2);
  return octets;
}

/** Other data of a BADTIME reply: the server's time (RFC 8945 section 5.2.3). */
export function timeAsData(seconds: number): Uint8Array {
  return u48AndU16(seconds, 0).subarray(0, 6);
}

export function macOf(
  algorithm: TsigAlgorithm,
  secret: Uint8Array,
  parts: readonly Uint8Array[],
): Uint8Array {
  const mac = nodeCrypto().createHmac(algorithm.hash, secret);
  for (const part of parts) mac.update(part);
  return mac.digest();
}

/** Constant-time comparison. The received MAC may be shorter. */
export function isMac(received: Uint8Array, whole: Uint8Array): boolean {
  if (received.length > whole.length) return false;
  return nodeCrypto().timingSafeEqual(received, whole.subarray(0, received.length));
}

function u48AndU16(seconds: number, small: number): Uint8Array {
  const writer = new WireWriter({ capacity: 8 });
  writer.u48(seconds);
  writer.u16(small);
  return writer.finish();
}
