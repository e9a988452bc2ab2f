import assert from "node:assert/strict";
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { test } from "node:test";
import { AccountKey } from "./json-web-signature.ts";

/** The key of RFC 7515 appendix A.3. */
const JWK = {
  kty: "EC",
  crv: "P-256",
  x: "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
  y: "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
  d: "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI",
};
const key = createPrivateKey({ key: JWK, format: "jwk" });
const account = new AccountKey(key);

function parsed(text: string) {
  const { protected: head, payload, signature, ...more } = JSON.parse(text);
  assert.deepEqual(more, {});
  const isSigned = verify(
    "sha256",
    Buffer.from(`${head}.${payload}`),
    { key: createPublicKey(key), dsaEncoding: "ieee-p1363" },
    Buffer.from(signature, "base64url"),
  );
  assert.ok(isSigned, "the signature does not verify");
  return { head: JSON.parse(Buffer.from(head, "base64url").toString()), payload };
}

test("the thumbprint hashes the required members in the order of the alphabet", () => {
  const text = `{"crv":"P-256","kty":"EC","x":"${JWK.x}","y":"${JWK.y}"}`;
  assert.equal(account.thumbprint, createHash("sha256").update(text).digest("base64url"));
});

test("a request for a new account carries the public key, and nothing of the private one", () => {
  const url = "https://ca.example/new-account";
  const { head, payload } = parsed(account.sign({ nonce: "n1", url }, { termsOfServiceAgreed: true }));
  const { d: _, ...jwk } = JWK;
  assert.deepEqual(head, { alg: "ES256", nonce: "n1", url, jwk });
  assert.equal(Buffer.from(payload, "base64url").toString(), '{"termsOfServiceAgreed":true}');
});

test("a request of an account names the account; without payload it is a POST-as-GET", () => {
  const url = "https://ca.example/order/1";
  const { head, payload } = parsed(
    account.sign({ nonce: "n2", url, account: "https://ca.example/acct/1" }, undefined),
  );
  assert.deepEqual(head, { alg: "ES256", nonce: "n2", url, kid: "https://ca.example/acct/1" });
  assert.equal(payload, "");
});

test("the TXT record of a challenge is the digest of the token and the thumbprint", () => {
  const digest = createHash("sha256").update(`token-1.${account.thumbprint}`).digest("base64url");
  assert.equal(account.challengeText("token-1"), digest);
});

for (const [title, { privateKey }] of [
  ["another curve", generateKeyPairSync("ec", { namedCurve: "P-384" })],
  ["another kind", generateKeyPairSync("ed25519")],
] as const)
  test(`a key of ${title} is refused`, () => {
    assert.throws(
      () => new AccountKey(privateKey),
      /^TypeError: the account's key is not on the curve P-256$/,
    );
  });
