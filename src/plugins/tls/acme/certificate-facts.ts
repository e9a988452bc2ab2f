/** Certificate signing requests, and the data of a certificate that its renewal needs. */
import type { KeyObject } from "node:crypto";
import { nodeCrypto } from "../../../lib/files/node-modules.ts";
import {
  bitString,
  DerError,
  elementsOf,
  integer,
  objectIdentifier,
  sequence,
  Tag,
  tagged,
} from "../../../lib/net/der.ts";

const OID = {
  extensionRequest: "2a864886f70d01090e",
  subjectAltName: "551d11",
  authorityKeyIdentifier: "551d23",
  ecdsaWithSha256: "2a8648ce3d040302",
};
const CONTEXT = { names: 0x82, attributes: 0xa0, keyIdentifier: 0x80, extensions: 0xa3 };

/**
 * A certificate signing request (RFC 2986) for one name, placed where clients check it (RFC 5280 section 4.2.1.6).
 * @param key on the curve P-256, for ECDSA with SHA-256 @returns DER
 */
export function signingRequest(domain: string, key: KeyObject): Buffer {
  const { createPublicKey, sign } = nodeCrypto();
  const names = sequence(tagged(CONTEXT.names, Buffer.from(domain)));
  const extensions = sequence(
    sequence(objectIdentifier(OID.subjectAltName), tagged(Tag.OCTET_STRING, names)),
  );
  const attribute = sequence(objectIdentifier(OID.extensionRequest), tagged(Tag.SET, extensions));
  const request = sequence(
    integer(Buffer.from([0])),
    sequence(),
    createPublicKey(key).export({ type: "spki", format: "der" }),
    tagged(CONTEXT.attributes, attribute),
  );
  const algorithm = sequence(objectIdentifier(OID.ecdsaWithSha256));
  return sequence(request, algorithm, bitString(sign("sha256", request, key)));
}

/**
 * The identifier of a certificate in requests for renewal information (RFC 9773 section 4.1). @param certificate DER
 * @returns nothing if the certificate does not name its issuer
 */
export function renewalIdentifier(certificate: Buffer): string | undefined {
  try {
    const [whole] = elementsOf(certificate);
    const [toBeSigned] = elementsOf(whole?.content ?? EMPTY);
    const fields = elementsOf(toBeSigned?.content ?? EMPTY);
    const serial = fields.find(({ tag }) => tag === Tag.INTEGER);
    const extensions = fields.find(({ tag }) => tag === CONTEXT.extensions);
    const [list] = elementsOf(extensions?.content ?? EMPTY);
    const issuer = elementsOf(list?.content ?? EMPTY)
      .map(({ content }) => elementsOf(content))
      .find(([id]) => id?.content.toString("hex") === OID.authorityKeyIdentifier)
      ?.at(-1);
    const [identifier] = elementsOf(issuer?.content ?? EMPTY);
    const key = elementsOf(identifier?.content ?? EMPTY).find(({ tag }) => tag === CONTEXT.keyIdentifier);
    if (serial === undefined || key === undefined) return undefined;
    return `${key.content.toString("base64url")}.${serial.content.toString("base64url")}`;
  } catch (error) {
    if (error instanceof DerError) return undefined;
    throw error;
  }
}

const EMPTY = Buffer.alloc(0);
