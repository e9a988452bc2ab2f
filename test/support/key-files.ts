/** Keys as `dnssec-keygen` writes them, where it need not be installed. */
import { generateKeyPairSync } from "node:crypto";

/** @returns the two files of a new key of ECDSAP256SHA256 */
export function newKeyFiles(owner: string, flags = 257): { readonly key: string; readonly private: string } {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { x = "", y = "", d = "" } = privateKey.export({ format: "jwk" });
  const octets = (text: string) => Buffer.from(text, "base64url");
  const published = Buffer.concat([octets(x), octets(y)]).toString("base64");
  const secret = octets(d).toString("base64");
  return {
    key: `; a comment\n${owner} 3600 IN DNSKEY ${flags} 3 13 ${published}\n`,
    private: `Private-key-format: v1.3\nAlgorithm: 13 (ECDSAP256SHA256)\nPrivateKey: ${secret}\n`,
  };
}
