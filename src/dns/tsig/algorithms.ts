/** The algorithms of TSIG (RFC 8945 section 6), without MD5, as in CoreDNS. */
import { Name } from "../name.ts";

/** An algorithm of TSIG (RFC 8945 section 6). */
export interface TsigAlgorithm {
  /** As in the record. */
  readonly name: Name;
  /** The hash's name in `node:crypto`. */
  readonly hash: string;
  /** Of a whole MAC. */
  readonly octets: number;
}

const ALGORITHMS: readonly TsigAlgorithm[] = [
  { name: Name.parse("hmac-sha1."), hash: "sha1", octets: 20 },
  { name: Name.parse("hmac-sha224."), hash: "sha224", octets: 28 },
  { name: Name.parse("hmac-sha256."), hash: "sha256", octets: 32 },
  { name: Name.parse("hmac-sha384."), hash: "sha384", octets: 48 },
  { name: Name.parse("hmac-sha512."), hash: "sha512", octets: 64 },
];

/** The algorithm by its name; `undefined` for an unknown one. */
export function tsigAlgorithm(name: Name): TsigAlgorithm | undefined {
  return ALGORITHMS.find((algorithm) => algorithm.name.equals(name));
}

/** The default, which every implementation must support. */
export const DEFAULT_TSIG_ALGORITHM: TsigAlgorithm = {
  name: Name.parse("hmac-sha256."),
  hash: "sha256",
  octets: 32,
};

export const TSIG_ALGORITHM_NAMES: readonly string[] = ALGORITHMS.map(({ name }) =>
  name.toString().slice(0, -1),
);
