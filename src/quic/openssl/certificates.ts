/** OpenSSL's certificates and keys, made from PEM. */
import { nodeCrypto } from "../../lib/files/node-modules.ts";
import type { Pointer, QuicLibrary } from "./library.ts";

/** Calls `use` with a pointer to a pointer to the octets, as OpenSSL's decoders expect. */
function decoded(
  library: QuicLibrary,
  der: Uint8Array,
  use: (at: Uint8Array, length: number) => Pointer,
): Pointer {
  // With an ArrayBuffer of their own: V8 moves small arrays without one.
  const octets = new Uint8Array(new ArrayBuffer(der.length));
  octets.set(der);
  const at = new BigUint64Array([BigInt(library.addressOf(octets))]);
  const found = use(new Uint8Array(at.buffer), octets.length);
  if (found === 0) throw new Error(library.errors());
  return found;
}

/** The certificates in a text, in order, as DER. */
export function certificatesIn(pem: string): Buffer[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => new (nodeCrypto().X509Certificate)(block).raw);
}

export function decodeCertificate(library: QuicLibrary, der: Uint8Array): Pointer {
  return decoded(library, der, (at, length) => library.ssl.d2i_X509(null, at, length));
}

/** Certificate chain and key, for a server or a client. */
export class KeyedChain {
  readonly leaf: Pointer;
  readonly key: Pointer;
  readonly chain: Pointer;
  readonly #library: QuicLibrary;
  readonly #authorities: readonly Pointer[];

  /**
   * @param certificate PEM, the server's own first
   * @param key PEM
   * @throws Error
   */
  constructor(library: QuicLibrary, certificate: string, key: string) {
    this.#library = library;
    const [leaf, ...authorities] = certificatesIn(certificate);
    if (leaf === undefined) throw new Error("there is no certificate in it");
    const der = nodeCrypto().createPrivateKey(key).export({ type: "pkcs8", format: "der" });
    this.leaf = decodeCertificate(library, leaf);
    this.#authorities = authorities.map((each) => decodeCertificate(library, each));
    this.key = decoded(library, der, (at, length) => library.ssl.d2i_AutoPrivateKey(null, at, length));
    this.chain = library.ssl.OPENSSL_sk_new_null();
    for (const each of this.#authorities) library.ssl.OPENSSL_sk_push(this.chain, each);
  }

  /** Connections that use it hold their own reference. */
  free(): void {
    const { ssl } = this.#library;
    ssl.X509_free(this.leaf);
    ssl.EVP_PKEY_free(this.key);
    ssl.OPENSSL_sk_free(this.chain);
    for (const each of this.#authorities) ssl.X509_free(each);
  }
}

/** Trusted certificates for verification. */
export class TrustStore {
  readonly pointer: Pointer;
  readonly #library: QuicLibrary;

  /** @param authorities DER */
  constructor(library: QuicLibrary, authorities: readonly Uint8Array[]) {
    this.#library = library;
    const { ssl } = library;
    this.pointer = ssl.X509_STORE_new();
    for (const authority of authorities) {
      const certificate = decodeCertificate(library, authority);
      ssl.X509_STORE_add_cert(this.pointer, certificate);
      ssl.X509_free(certificate);
    }
    ssl.ERR_clear_error();
  }

  free(): void {
    this.#library.ssl.X509_STORE_free(this.pointer);
  }
}
