/** Certificates for tests, made on the spot: RFC 5280 in as few octets as TLS needs. */
import { generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from "node:crypto";
import { bitString, integer, objectIdentifier, sequence, tagged } from "../../src/lib/net/der.ts";

export interface IssuedCertificate {
  /** PEM. */
  readonly certificate: string;
  /** PEM, PKCS #8. */
  readonly key: string;
}

export interface CertificateOptions {
  readonly commonName: string;
  readonly organisation?: string;
  /** DNS names and IPv4 addresses that a server's certificate is for. */
  readonly hosts?: readonly string[];
  /** Default: one day ago. */
  readonly notBefore?: Date;
  /** Default: one day from now. */
  readonly notAfter?: Date;
}

const DAY = 24 * 60 * 60 * 1000;

/** A certificate authority of its own. */
export class CertificateAuthority {
  /** PEM. */
  readonly certificate: string;
  readonly #name: Buffer;
  readonly #key: KeyObject;

  constructor(commonName = "test authority") {
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    this.#key = privateKey;
    this.#name = distinguishedName({ commonName });
    this.certificate = this.#issue({ commonName }, this.#name, publicKey, [
      extension(OID.basicConstraints, sequence(Buffer.from([0x01, 0x01, 0xff])), true),
    ]);
  }

  issue(options: CertificateOptions): IssuedCertificate {
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const hosts = options.hosts ?? [];
    const extensions =
      hosts.length === 0 ? [] : [extension(OID.subjectAltName, sequence(...hosts.map(alternativeName)))];
    return {
      certificate: this.#issue(options, distinguishedName(options), publicKey, extensions),
      key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    };
  }

  #issue(
    options: CertificateOptions,
    subject: Buffer,
    key: KeyObject,
    extensions: readonly Buffer[],
  ): string {
    const { notBefore = new Date(Date.now() - DAY), notAfter = new Date(Date.now() + DAY) } = options;
    const algorithm = sequence(objectIdentifier(OID.ecdsaWithSha256));
    const toBeSigned = sequence(
      tagged(0xa0, integer(Buffer.from([2]))),
      integer(Buffer.concat([Buffer.from([1]), randomBytes(8)])),
      algorithm,
      this.#name,
      sequence(generalizedTime(notBefore), generalizedTime(notAfter)),
      subject,
      key.export({ type: "spki", format: "der" }),
      ...(extensions.length === 0 ? [] : [tagged(0xa3, sequence(...extensions))]),
    );
    const signature = sign("sha256", toBeSigned, this.#key);
    return new X509Certificate(sequence(toBeSigned, algorithm, bitString(signature))).toString();
  }
}

const OID = {
  commonName: "550403",
  organisation: "55040a",
  subjectAltName: "551d11",
  basicConstraints: "551d13",
  ecdsaWithSha256: "2a8648ce3d040302",
};

function distinguishedName({ commonName, organisation }: CertificateOptions): Buffer {
  const attribute = (oid: string, text: string) =>
    tagged(0x31, sequence(objectIdentifier(oid), tagged(0x0c, Buffer.from(text))));
  return sequence(
    ...(organisation === undefined ? [] : [attribute(OID.organisation, organisation)]),
    attribute(OID.commonName, commonName),
  );
}

function alternativeName(host: string): Buffer {
  const isAddress = /^\d+(\.\d+){3}$/.test(host);
  return isAddress ? tagged(0x87, Buffer.from(host.split(".").map(Number))) : tagged(0x82, Buffer.from(host));
}

function extension(oid: string, value: Buffer, critical = false): Buffer {
  const flag = critical ? [Buffer.from([0x01, 0x01, 0xff])] : [];
  return sequence(objectIdentifier(oid), ...flag, tagged(0x04, value));
}

function generalizedTime(date: Date): Buffer {
  return tagged(0x18, Buffer.from(`${date.toISOString().replace(/\D/g, "").slice(0, 14)}Z`));
}
