/** The algorithms of TSIG (RFC 8945 section 6). MD5 is not among them, as in CoreDNS. */
import { Name } from "../name.ts";

export interface TsigAlgorithm {
  /** As it stands in the record. */
  readonly name: Name;
  /** What `node:crypto` calls the hash. */
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

export function tsigAlgorithm(name: Name): TsigAlgorithm | undefined {
  return ALGORITHMS.find((algorithm) => algorithm.name.equals(name));
}

/** What signs unless somebody says otherwise: the one that every implementation has to have. */
export const DEFAULT_TSIG_ALGORITHM: TsigAlgorithm = {
  name: Name.parse("hmac-sha256."),
  hash: "sha256",
  octets: 32,
};

export const TSIG_ALGORITHM_NAMES: readonly string[] = ALGORITHMS.map(({ name }) =>
  name.toString().slice(0, -1),
);
