/**
 * The account key of an ACME client, and requests signed with it: flattened JSON of RFC 7515 with ES256 (RFC 8555
 * section 6.2).
 */
import type { JsonWebKey, KeyObject } from "node:crypto";
import { nodeCrypto } from "../../../lib/files/node-modules.ts";

/** The header of a signed request. */
export interface ProtectedHeader {
  readonly nonce: string;
  readonly url: string;
  /** The account's URL; without it the request includes the key itself, as for a new account. */
  readonly account?: string | undefined;
}

/** A key that signs for one account. */
export class AccountKey {
  readonly #key: KeyObject;
  readonly #publicKey: JsonWebKey;
  /** The thumbprint of the key in responses to challenges (RFC 7638). */
  readonly thumbprint: string;

  /** @throws TypeError for a key that is not on the curve P-256 */
  constructor(key: KeyObject) {
    const { createPublicKey } = nodeCrypto();
    const { kty, crv, x, y } = createPublicKey(key).export({ format: "jwk" });
    if (kty !== "EC" || crv !== "P-256") throw new TypeError("the account's key is not on the curve P-256");
    this.#key = key;
    this.#publicKey = { crv, kty, x, y } as JsonWebKey;
    // RFC 7638 requires members in alphabetical order, without spaces.
    this.thumbprint = base64url(digest(JSON.stringify(this.#publicKey)));
  }

  /** @param payload as JSON; omitted for a request that only reads (POST-as-GET) */
  sign({ nonce, url, account }: ProtectedHeader, payload: unknown): string {
    const who = account === undefined ? { jwk: this.#publicKey } : { kid: account };
    const head = base64url(JSON.stringify({ alg: "ES256", nonce, url, ...who }));
    const body = payload === undefined ? "" : base64url(JSON.stringify(payload));
    const signature = nodeCrypto().sign("sha256", Buffer.from(`${head}.${body}`), {
      key: this.#key,
      dsaEncoding: "ieee-p1363",
    });
    return JSON.stringify({ protected: head, payload: body, signature: base64url(signature) });
  }

  /** The text of the TXT record that proves control of a name (RFC 8555 section 8.4). */
  challengeText(token: string): string {
    return base64url(digest(`${token}.${this.thumbprint}`));
  }
}

export function base64url(content: string | Uint8Array): string {
  return Buffer.from(content).toString("base64url");
}

function digest(text: string): Buffer {
  return nodeCrypto().createHash("sha256").update(text).digest();
}
