/** Shared by all connections of a client: trusted authorities and the client certificate. */
import { certificatesIn, KeyedChain, TrustStore } from "./certificates.ts";
import * as C from "./constants.ts";
import { KeptSessions } from "./kept-sessions.ts";
import type { Pointer, QuicLibrary } from "./library.ts";

/** In a form that can be sent to another thread. */
export interface QuicTrust {
  /** PEM; trusted authorities for the certificates of servers. */
  readonly authorities: string;
  /** PEM; sent to servers that ask for a certificate. */
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
}

export class ClientContext {
  readonly pointer: Pointer;
  readonly sessions: KeptSessions;
  readonly #library: QuicLibrary;

  /** @throws Error if certificate or key is invalid */
  constructor(library: QuicLibrary, { authorities, certificate, key }: QuicTrust) {
    this.#library = library;
    this.sessions = new KeptSessions(library);
    const { ssl } = library;
    this.pointer = ssl.SSL_CTX_new(ssl.OSSL_QUIC_client_method());
    ssl.SSL_CTX_set_domain_flags(this.pointer, C.SSL_DOMAIN_FLAG_SINGLE_THREAD);
    ssl.SSL_CTX_set_verify(this.pointer, C.SSL_VERIFY_PEER, 0);
    const trust = new TrustStore(library, certificatesIn(authorities));
    ssl.SSL_CTX_set1_cert_store(this.pointer, trust.pointer);
    trust.free();
    if (certificate === undefined || key === undefined) return;
    const chain = new KeyedChain(library, certificate, key);
    ssl.SSL_CTX_use_cert_and_key(this.pointer, chain.leaf, chain.key, chain.chain, 1);
    chain.free();
  }

  free(): void {
    this.sessions.free();
    this.#library.ssl.SSL_CTX_free(this.pointer);
  }
}
