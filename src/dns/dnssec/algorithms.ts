/** Signing algorithms (RFC 8624 section 3.1), as `node:crypto` names them. */

export interface SigningAlgorithm {
  /** Its number in DNSKEY and RRSIG. */
  readonly number: number;
  readonly name: string;
  /** `undefined` if the algorithm includes its hash. */
  readonly hash: string | undefined;
  readonly keyType: "rsa" | "ec" | "okp";
  /** The curve's name in a JSON Web Key. */
  readonly curve: string | undefined;
}

const ALGORITHMS: readonly SigningAlgorithm[] = [
  { number: 5, name: "RSASHA1", hash: "sha1", keyType: "rsa", curve: undefined },
  { number: 7, name: "NSEC3RSASHA1", hash: "sha1", keyType: "rsa", curve: undefined },
  { number: 8, name: "RSASHA256", hash: "sha256", keyType: "rsa", curve: undefined },
  { number: 10, name: "RSASHA512", hash: "sha512", keyType: "rsa", curve: undefined },
  { number: 13, name: "ECDSAP256SHA256", hash: "sha256", keyType: "ec", curve: "P-256" },
  { number: 14, name: "ECDSAP384SHA384", hash: "sha384", keyType: "ec", curve: "P-384" },
  { number: 15, name: "ED25519", hash: undefined, keyType: "okp", curve: "Ed25519" },
];

/** The algorithm with this number; `undefined` for one that cannot sign here. */
export function signingAlgorithm(number: number): SigningAlgorithm | undefined {
  return ALGORITHMS.find((algorithm) => algorithm.number === number);
}

export const SIGNING_ALGORITHM_NAMES: readonly string[] = ALGORITHMS.map(({ name }) => name);
