/** What all connections of a client share: whom it trusts, and what it shows. */
import { certificatesIn, KeyedChain, TrustStore } from "./certificates.ts";
import * as C from "./constants.ts";
import { KeptSessions } from "./kept-sessions.ts";
import type { Pointer, QuicLibrary } from "./library.ts";

/** As it can be handed to another thread. */
export interface QuicTrust {
  /** PEM; who may have signed the certificates of servers. */
  readonly authorities: string;
  /** PEM; what is shown to servers that ask. */
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
}

export class ClientContext {
  readonly pointer: Pointer;
  readonly sessions: KeptSessions;
  readonly #library: QuicLibrary;

  /** @throws Error where certificate and key are no good */
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
