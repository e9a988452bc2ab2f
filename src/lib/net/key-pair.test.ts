import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { CertificateAuthority } from "../../../test/support/certificates.ts";
import { checkKeyPair } from "./key-pair.ts";

function pem(options: { readonly passphrase?: string } = {}): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const cipher = options.passphrase === undefined ? {} : { cipher: "aes-256-cbc", ...options };
  return privateKey.export({ type: "pkcs8", format: "pem", ...cipher }).toString();
}

const BROKEN = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

for (const [what, cert, key, fault] of [
  ["no certificate", "junk", pem(), /^the certificate file holds no certificate in PEM form$/],
  ["an empty file", "", pem(), /^the certificate file holds no certificate in PEM form$/],
  ["the key in place of the certificate", pem(), pem(), /^the certificate file holds no certificate/],
  ["no key", BROKEN, "junk", /^the key file holds no private key in PEM form$/],
  [
    "an encrypted key",
    BROKEN,
    pem({ passphrase: "x" }),
    /^the key is encrypted with a password: decrypt it first/,
  ],
  ["a broken certificate", BROKEN, pem(), /^[a-z][^:]+$/],
] as const) {
  test(what, () => {
    const refused = (error: unknown): boolean => error instanceof Error && fault.test(error.message);
    assert.throws(() => checkKeyPair({ cert, key }), refused);
    assert.throws(() => checkKeyPair({ cert: Buffer.from(cert), key: Buffer.from(key) }), refused);
  });
}

test("a key of another certificate", () => {
  const authority = new CertificateAuthority();
  const { certificate, key } = authority.issue({ commonName: "a" });
  checkKeyPair({ cert: certificate, key });
  assert.throws(
    () => checkKeyPair({ cert: certificate, key: pem() }),
    /^Error: the key does not belong to the certificate \(key values mismatch\)$/,
  );
});

for (const ca of ["", "junk", BROKEN, pem()])
  test(`invalid authorities: ${JSON.stringify(ca.slice(0, 30))}`, () => {
    const { certificate, key } = new CertificateAuthority().issue({ commonName: "a" });
    assert.throws(
      () => checkKeyPair({ cert: certificate, key, ca: Buffer.from(ca) }),
      /^Error: the file of certificate authorities holds no certificate in PEM form$/,
    );
  });

test("valid authorities beside invalid text", () => {
  const authority = new CertificateAuthority();
  const { certificate, key } = authority.issue({ commonName: "a" });
  checkKeyPair({ cert: certificate, key, ca: `notes\n${BROKEN}${authority.certificate}` });
});
