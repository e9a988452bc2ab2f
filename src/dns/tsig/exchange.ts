/** The client side of TSIG: signs a query and verifies the messages of its answer (RFC 8945 sections 5.1 and 5.3.1). */
import { rcodeName } from "../numbers.ts";
import { readU16, writeU16 } from "../octets.ts";
import { RecordType } from "../type-names.ts";
import { WireError, WireReader } from "../wire-reader.ts";
import type { TsigKey } from "./keys.ts";
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
  unsignedMessage,
  withLength,
} from "./signature.ts";

/** Unsigned messages between two signed ones (RFC 8945 section 5.3.1). */
const MOST_UNSIGNED = 99;

const NOTHING = new Uint8Array(0);

/** A reply that is not authentic. */
export class TsigError extends Error {
  override readonly name = "TsigError";
  /** TSIG's own error in the reply, 0 if it has none. */
  readonly code: number;

  constructor(message: string, code = 0) {
    super(message);
    this.code = code;
  }
}

/** One exchange: a query, and the messages of the answer in the order of arrival. */
export class TsigExchange {
  readonly #key: TsigKey;
  readonly #now: () => number;
  readonly #fudge: number;
  #previous: Uint8Array = NOTHING;
  #isFirst = true;
  /** Messages since the last signature. */
  #unsigned: Uint8Array[] = [];

  /**
   * @param now wall time in seconds
   * @param fudge seconds that the clocks may differ
   */
  constructor(key: TsigKey, now: () => number, fudge: number = TSIG_FUDGE) {
    this.#key = key;
    this.#now = now;
    this.#fudge = fudge;
  }

  /** The signed query. It must be sent with its own id. */
  sign(query: Uint8Array): Uint8Array {
    const { name, algorithm, secret } = this.#key;
    const facts = {
      key: name,
      algorithm: algorithm.name,
      timeSigned: this.#now(),
      fudge: this.#fudge,
      originalId: readU16(query, 0),
      error: 0,
      otherData: NOTHING,
    };
    const mac = macOf(algorithm, secret, [query, signedVariables(facts)]);
    this.#previous = mac;
    const bytes = new Uint8Array(query.length + signatureLength(name, algorithm.name, mac.length, 0));
    bytes.set(query);
    return bytes.subarray(0, appendSignature(bytes, query.length, { ...facts, mac }));
  }

  /** Whether all messages so far are covered by a signature. The last message of an answer must have one. */
  get isSettled(): boolean {
    return !this.#isFirst && this.#unsigned.length === 0;
  }

  /**
   * @returns the message without its signature
   * @throws TsigError
   */
  verify(message: Uint8Array): Uint8Array {
    const offset = signatureOffset(message);
    if (offset === undefined) return this.#keep(message);
    const signature = signatureIn(message, offset);
    const plain = unsignedMessage(message, offset, signature.originalId);
    const key = this.#key;
    if (!signature.key.equals(key.name))
      throw new TsigError(`reply is signed with the key ${signature.key}, and not with ${key.name}`);
    this.#checkMac(plain, signature);
    if (signature.error !== 0)
      throw new TsigError(`the server refused the signature: ${errorName(signature.error)}`, signature.error);
    if (Math.abs(this.#now() - signature.timeSigned) > signature.fudge)
      throw new TsigError("reply was signed at another time: the clocks differ");
    this.#previous = signature.mac;
    this.#isFirst = false;
    this.#unsigned = [];
    writeU16(plain, 0, readU16(message, 0));
    return plain;
  }

  #keep(message: Uint8Array): Uint8Array {
    if (this.#isFirst) throw new TsigError("reply is not signed");
    if (this.#unsigned.length >= MOST_UNSIGNED)
      throw new TsigError(`more than ${MOST_UNSIGNED} messages without a signature`);
    this.#unsigned.push(message);
    return message;
  }

  #checkMac(plain: Uint8Array, signature: TsigSignature): void {
    const { algorithm, secret } = this.#key;
    // Errors about key and signature come without a MAC, so they are not authentic: they only show that something is wrong.
    if (signature.mac.length === 0 && signature.error !== 0)
      throw new TsigError(`the server refused the signature: ${errorName(signature.error)}`, signature.error);
    if (!signature.algorithm.equals(algorithm.name))
      throw new TsigError(`reply is signed with ${signature.algorithm}, and not with ${algorithm.name}`);
    const whole = macOf(algorithm, secret, [
      withLength(this.#previous),
      ...this.#unsigned,
      plain,
      this.#isFirst ? signedVariables(signature) : signedTimers(signature),
    ]);
    const least = this.#key.leastMacOctets ?? algorithm.octets;
    if (signature.mac.length < least || !isMac(signature.mac, whole))
      throw new TsigError("signature of the reply does not verify");
  }
}

function errorName(code: number): string {
  return code === 16 ? "BADSIG" : rcodeName(code);
}

function signatureIn(message: Uint8Array, offset: number): TsigSignature {
  let signature: TsigSignature | undefined;
  try {
    signature = readSignature(message, offset, message.length);
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
  }
  if (signature === undefined) throw new TsigError("TSIG record is malformed");
  return signature;
}

/** Offset of the TSIG record, if it is the last of the message. */
function signatureOffset(message: Uint8Array): number | undefined {
  const reader = new WireReader(message, 12, message.length);
  try {
    for (let count = readU16(message, 4); count > 0; count--) {
      reader.skipName();
      reader.skip(4);
    }
    let last: number | undefined;
    let type = 0;
    const additional = readU16(message, 10);
    for (let count = readU16(message, 6) + readU16(message, 8) + additional; count > 0; count--) {
      last = reader.offset;
      reader.skipName();
      type = reader.u16();
      reader.skip(6);
      reader.skip(reader.u16());
    }
    return additional > 0 && type === RecordType.TSIG ? last : undefined;
  } catch (error) {
    if (error instanceof WireError) throw new TsigError("reply is malformed");
    throw error;
  }
}
