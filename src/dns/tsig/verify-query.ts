/** The server side of TSIG: verifies a signed query (RFC 8945 section 5.2), and signs the replies to it (section 5.3). */
import type { Name } from "../name.ts";
import { Rcode } from "../numbers.ts";
import { readU16 } from "../octets.ts";
import { WireError } from "../wire-reader.ts";
import { type TsigAlgorithm, tsigAlgorithm } from "./algorithms.ts";
import type { TsigKey, TsigKeySource } from "./keys.ts";
import {
  appendSignature,
  isMac,
  macOf,
  readSignature,
  signatureLength,
  signedTimers,
  signedVariables,
  TSIG_FUDGE,
  type TsigSignature,
  timeAsData,
  unsignedMessage,
  withLength,
} from "./signature.ts";

/** Shorter MACs are malformed (RFC 8945 section 5.2.2.1). */
const LEAST_MAC_OCTETS = 10;

const NOTHING = new Uint8Array(0);

/** What the check of a signed query has found. */
export type QueryVerdict =
  /** The record or its MAC is malformed: FORMERR without TSIG. */
  | { readonly kind: "malformed" }
  /** NOTAUTH, with the error in TSIG. */
  | { readonly kind: "refused"; readonly error: number; readonly signer: ReplySigner }
  | { readonly kind: "verified"; readonly key: TsigKey; readonly signer: ReplySigner };

/**
 * @param offset start of the TSIG record's owner
 * @param now wall time in seconds
 */
export function verifyQuery(
  bytes: Uint8Array,
  length: number,
  offset: number,
  keys: TsigKeySource,
  now: () => number,
): QueryVerdict {
  const signature = signatureOf(bytes, offset, length);
  if (signature === undefined) return { kind: "malformed" };
  const key = keys.get(signature.key);
  if (key === undefined) return refusedWithoutMac(signature, Rcode.BADKEY);
  const algorithm = tsigAlgorithm(signature.algorithm);
  // CoreDNS's error for an unknown algorithm; RFC 8945 section 5.2.1 requires BADKEY.
  if (algorithm === undefined) return refusedWithoutMac(signature, BADSIG);
  const { mac } = signature;
  if (mac.length > algorithm.octets) return { kind: "malformed" };
  if (mac.length < Math.max(LEAST_MAC_OCTETS, algorithm.octets / 2)) return { kind: "malformed" };
  const message = unsignedMessage(bytes, offset, signature.originalId);
  const whole = macOf(algorithm, key.secret, [message, signedVariables(signature)]);
  if (!isMac(mac, whole)) return refusedWithoutMac(signature, BADSIG);
  const signer = new ReplySigner(signature, { key, algorithm, now });
  const seconds = now();
  if (Math.abs(seconds - signature.timeSigned) > signature.fudge) {
    signer.refuse(Rcode.BADTIME, signature.timeSigned, timeAsData(seconds));
    return { kind: "refused", error: Rcode.BADTIME, signer };
  }
  if (mac.length < Math.min(key.leastMacOctets ?? algorithm.octets, algorithm.octets)) {
    signer.refuse(Rcode.BADTRUNC, undefined, NOTHING);
    return { kind: "refused", error: Rcode.BADTRUNC, signer };
  }
  return { kind: "verified", key, signer };
}

/** In TSIG the number means BADSIG, and not BADVERS. */
export const BADSIG = 16;

function signatureOf(bytes: Uint8Array, offset: number, length: number): TsigSignature | undefined {
  try {
    return readSignature(bytes, offset, length);
  } catch (error) {
    if (error instanceof WireError) return undefined;
    throw error;
  }
}

function refusedWithoutMac(signature: TsigSignature, error: number): QueryVerdict {
  const signer = new ReplySigner(signature, undefined);
  signer.refuse(error, 0, NOTHING);
  return { kind: "refused", error, signer };
}

interface Secret {
  readonly key: TsigKey;
  readonly algorithm: TsigAlgorithm;
  /** Wall time in seconds. */
  readonly now: () => number;
}

/** Signs the messages of one answer in the order in which they are sent. It is a `MessageSeal`. */
export class ReplySigner {
  readonly room: number;
  readonly #keyName: Name;
  readonly #algorithmName: Name;
  readonly #secret: Secret | undefined;
  /** The previous MAC: the query's, then that of the previous message. */
  #previous: Uint8Array;
  #isFirst = true;
  #error: number = Rcode.NOERROR;
  /** Overrides the current time. */
  #time: number | undefined;
  #otherData: Uint8Array = NOTHING;

  /** @param secret `undefined` for an unsigned error reply (RFC 8945 section 5.3.2) */
  constructor(query: TsigSignature, secret: Secret | undefined) {
    this.#keyName = query.key;
    this.#algorithmName = query.algorithm;
    this.#secret = secret;
    this.#previous = query.mac;
    this.room = signatureLength(query.key, query.algorithm, secret?.algorithm.octets ?? 0, 6);
  }

  refuse(error: number, time: number | undefined, otherData: Uint8Array): void {
    this.#error = error;
    this.#time = time;
    this.#otherData = otherData;
  }

  seal(bytes: Uint8Array, length: number): number {
    const secret = this.#secret;
    const facts = {
      key: this.#keyName,
      algorithm: this.#algorithmName,
      timeSigned: this.#time ?? secret?.now() ?? 0,
      fudge: TSIG_FUDGE,
      originalId: readU16(bytes, 0),
      error: this.#error,
      otherData: this.#otherData,
    };
    if (secret === undefined) return appendSignature(bytes, length, { ...facts, mac: NOTHING });
    const mac = macOf(secret.algorithm, secret.key.secret, [
      withLength(this.#previous),
      bytes.subarray(0, length),
      this.#isFirst ? signedVariables(facts) : signedTimers(facts),
    ]);
    this.#previous = mac;
    this.#isFirst = false;
    return appendSignature(bytes, length, { ...facts, mac });
  }
}
