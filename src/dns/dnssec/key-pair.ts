/** A zone signing key from the two files of `dnssec-keygen`: `K<name>+<algorithm>+<tag>.key` and `.private`. */

import type { JsonWebKey, KeyObject } from "node:crypto";
import { nodeCrypto } from "../../lib/files/node-modules.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Name } from "../name.ts";
import { fromBase64, readU16 } from "../octets.ts";
import type { DataOf, ResourceRecord } from "../record-kind.ts";
import { DNSKEY } from "../record-table.ts";
import { canonicalData, parseRecord } from "../resource-record.ts";
import { SIGNING_ALGORITHM_NAMES, type SigningAlgorithm, signingAlgorithm } from "./algorithms.ts";

/** A key that signs zones. */
export interface KeyPair {
  /** The DNSKEY record with the TTL of its file. */
  readonly record: ResourceRecord<DataOf<typeof DNSKEY>>;
  readonly owner: Name;
  readonly tag: number;
  readonly algorithm: SigningAlgorithm;
  readonly privateKey: KeyObject;
  /** Whether the SEP bit is set: a KSK, or a combined key. */
  readonly isEntryPoint: boolean;
  /** Octets of a signature. */
  readonly signatureOctets: number;
}

/** A fault of a key, and in which of its two files. */
export class KeyPairError extends Error {
  override readonly name = "KeyPairError";
  readonly file: "key" | "private";

  constructor(file: "key" | "private", message: string) {
    super(message);
    this.file = file;
  }
}

const ZONE_KEY = 0x0100;
const ENTRY_POINT = 0x0001;

/**
 * @param publicText the file `.key`: comments and a DNSKEY record
 * @param privateText the file `.private`: lines with a field and its value
 * @throws KeyPairError
 */
export function readKeyPair(publicText: string, privateText: string): KeyPair {
  const record = readPublicKey(publicText);
  const { data } = record;
  const algorithm = signingAlgorithm(data.algorithm);
  if (algorithm === undefined)
    throw new KeyPairError(
      "key",
      `algorithm ${data.algorithm} is not supported for signing: use one of ${SIGNING_ALGORITHM_NAMES.join(", ")}`,
    );
  if ((data.flags & ZONE_KEY) === 0)
    throw new KeyPairError("key", `flags ${data.flags} are not those of a zone's key`);
  const fields = readFields(privateText);
  const number = Number.parseInt(fields.get("Algorithm") ?? "", 10);
  if (number !== algorithm.number)
    throw new KeyPairError(
      "private",
      `its algorithm differs from the public key's, which is ${algorithm.number} (${algorithm.name})`,
    );
  const { privateKey, signatureOctets } = makeKey(algorithm, data.publicKey, fields);
  return {
    record,
    owner: record.name.toLowerCase(),
    tag: keyTag(canonicalData(record)),
    algorithm,
    privateKey,
    isEntryPoint: (data.flags & ENTRY_POINT) !== 0,
    signatureOctets,
  };
}

/** RFC 4034 appendix B. @param rdata of a DNSKEY record */
export function keyTag(rdata: Uint8Array): number {
  let sum = 0;
  for (let at = 0; at < rdata.length; at++) sum += (at & 1) === 0 ? (rdata[at] ?? 0) << 8 : (rdata[at] ?? 0);
  return (sum + ((sum >>> 16) & 0xffff)) & 0xffff;
}

function readPublicKey(text: string): ResourceRecord<DataOf<typeof DNSKEY>> {
  const lines = text
    .split("\n")
    .map((line) => line.replace(/;.*$/, "").trim())
    .filter((line) => line !== "");
  let record: ResourceRecord;
  try {
    record = parseRecord(lines.join(" ").replaceAll(/[()]/g, " "));
  } catch (error) {
    throw new KeyPairError("key", `no DNSKEY record: ${messageOf(error)}`);
  }
  if (!DNSKEY.is(record)) throw new KeyPairError("key", "the record is not a DNSKEY");
  return record;
}

function readFields(text: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, name, value] = /^([A-Za-z0-9-]+):\s*(.*?)\s*$/.exec(line) ?? [];
    if (name !== undefined && value !== undefined) fields.set(name, value);
  }
  const version = fields.get("Private-key-format");
  if (version === undefined || !/^v1\./.test(version))
    throw new KeyPairError("private", "not in the form 'Private-key-format: v1.x' of dnssec-keygen");
  return fields;
}

function makeKey(
  algorithm: SigningAlgorithm,
  publicKey: Uint8Array,
  fields: ReadonlyMap<string, string>,
): { privateKey: KeyObject; signatureOctets: number } {
  const jwk =
    algorithm.keyType === "rsa" ? rsaKey(publicKey, fields) : curveKey(algorithm, publicKey, fields);
  let privateKey: KeyObject;
  let isPair: boolean;
  let signature: Uint8Array;
  try {
    const { createPrivateKey, createPublicKey, sign, verify } = nodeCrypto();
    privateKey = createPrivateKey({ key: jwk, format: "jwk" });
    const { kty, crv, n, e, x, y } = jwk;
    const published = createPublicKey({
      key: Object.fromEntries(
        Object.entries({ kty, crv, n, e, x, y }).filter(([, value]) => value !== undefined),
      ),
      format: "jwk",
    });
    const probe = new Uint8Array(32);
    signature = sign(algorithm.hash, probe, { key: privateKey, dsaEncoding: "ieee-p1363" });
    isPair = verify(algorithm.hash, probe, { key: published, dsaEncoding: "ieee-p1363" }, signature);
  } catch (error) {
    throw new KeyPairError("private", `the key is broken: ${messageOf(error)}`);
  }
  if (!isPair) throw new KeyPairError("private", "it does not belong to the public key");
  return { privateKey, signatureOctets: signature.length };
}

/** RFC 3110: the length of the exponent, the exponent, the modulus. */
function rsaKey(publicKey: Uint8Array, fields: ReadonlyMap<string, string>): JsonWebKey {
  const isLong = publicKey[0] === 0;
  const start = isLong ? 3 : 1;
  const end = start + (isLong ? readU16(publicKey, 1) : (publicKey[0] ?? 0));
  return {
    kty: "RSA",
    n: toBase64Url(publicKey.subarray(end)),
    e: toBase64Url(publicKey.subarray(start, end)),
    d: field(fields, "PrivateExponent"),
    p: field(fields, "Prime1"),
    q: field(fields, "Prime2"),
    dp: field(fields, "Exponent1"),
    dq: field(fields, "Exponent2"),
    qi: field(fields, "Coefficient"),
  };
}

/** RFC 6605, RFC 8080. */
function curveKey(
  { keyType, curve }: SigningAlgorithm,
  publicKey: Uint8Array,
  fields: ReadonlyMap<string, string>,
): JsonWebKey {
  const d = field(fields, "PrivateKey");
  const crv = curve ?? "";
  if (keyType === "okp") return { kty: "OKP", crv, x: toBase64Url(publicKey), d };
  const half = publicKey.length / 2;
  return {
    kty: "EC",
    crv,
    x: toBase64Url(publicKey.subarray(0, half)),
    y: toBase64Url(publicKey.subarray(half)),
    d,
  };
}

function field(fields: ReadonlyMap<string, string>, name: string): string {
  const octets = fromBase64(fields.get(name) ?? "");
  if (octets === undefined || octets.length === 0)
    throw new KeyPairError("private", `no field '${name}' in base64`);
  return toBase64Url(octets);
}

function toBase64Url(octets: Uint8Array): string {
  return Buffer.from(octets.buffer, octets.byteOffset, octets.length).toString("base64url");
}
