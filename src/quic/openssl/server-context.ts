/** Shared by all connections of a listener: application protocol, certificate, and client authentication. */
import { certificatesIn, KeyedChain, TrustStore } from "./certificates.ts";
import * as C from "./constants.ts";
import type { Pointer, QuicLibrary } from "./library.ts";

/** The server's identity, in a form that can be sent to another thread. */
export interface QuicIdentity {
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
  /** PEM; trusted authorities for clients' certificates. */
  readonly authorities: string | undefined;
  readonly clientAuthentication: "nocert" | "request" | "require" | "verify_if_given" | "require_and_verify";
  readonly logsKeys: boolean;
}

interface InForce {
  readonly chain: KeyedChain;
  readonly trust: TrustStore | undefined;
  readonly verifyMode: number;
  /** Whether any certificate is accepted. */
  readonly takesAny: boolean;
  readonly logsKeys: boolean;
}

export class ServerContext {
  readonly pointer: Pointer;
  readonly #library: QuicLibrary;
  /** Kept alive because OpenSSL uses it until the context is freed. */
  readonly #protocols: Uint8Array;
  readonly #takeAny: Pointer;
  #inForce: InForce | undefined;

  /** @param onKeys receives secrets of connections, one line each */
  constructor(library: QuicLibrary, protocol: string, onKeys: (line: string) => void) {
    this.#library = library;
    const { ssl } = library;
    this.#protocols = protocolList(protocol);
    this.pointer = ssl.SSL_CTX_new(ssl.OSSL_QUIC_server_method());
    ssl.SSL_CTX_set_domain_flags(this.pointer, C.SSL_DOMAIN_FLAG_SINGLE_THREAD);
    // Clients keep their sessions themselves, in tickets.
    ssl.SSL_CTX_ctrl(this.pointer, C.SSL_CTRL_SET_SESS_CACHE_MODE, C.SSL_SESS_CACHE_OFF, 0);
    ssl.SSL_CTX_set_session_id_context(this.pointer, this.#protocols, this.#protocols.length);
    const p = "uintptr_t";
    const select = library.callback([p, p, p, p, "unsigned int", p], (_ssl, out, length, theirs, count) =>
      this.#select(out as number, length as number, theirs as number, count as number),
    );
    ssl.SSL_CTX_set_alpn_select_cb(this.pointer, select, 0);
    const choose = library.callback([p, p], (connection) => this.#identify(connection as number));
    ssl.SSL_CTX_set_cert_cb(this.pointer, choose, 0);
    this.#takeAny = library.callback(["int", p], () => 1);
    ssl.SSL_CTX_set_keylog_callback(
      this.pointer,
      library.textCallback((line) => {
        if (this.#inForce?.logsKeys === true) onKeys(line);
      }),
    );
  }

  /**
   * For new connections. Without an identity they are refused.
   * @throws Error if certificate or key is invalid
   */
  identify(identity: QuicIdentity | undefined): void {
    const before = this.#inForce;
    this.#inForce = identity === undefined ? undefined : this.#load(identity);
    before?.chain.free();
    before?.trust?.free();
  }

  free(): void {
    this.identify(undefined);
    this.#library.ssl.SSL_CTX_free(this.pointer);
  }

  #load({ certificate, key, authorities, clientAuthentication, logsKeys }: QuicIdentity): InForce {
    const mode = clientAuthentication;
    const needsOne = mode === "require" || mode === "require_and_verify";
    return {
      chain: new KeyedChain(this.#library, certificate, key),
      trust:
        authorities === undefined ? undefined : new TrustStore(this.#library, certificatesIn(authorities)),
      verifyMode:
        mode === "nocert"
          ? C.SSL_VERIFY_NONE
          : C.SSL_VERIFY_PEER | (needsOne ? C.SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
      takesAny: mode === "request" || mode === "require",
      logsKeys,
    };
  }

  /** A client that offers only other protocols is refused (RFC 9001 section 8.1). */
  #select(out: Pointer, length: Pointer, theirs: Pointer, count: number): number {
    const mine = this.#protocols;
    const { ssl } = this.#library;
    const result = ssl.SSL_select_next_proto(out, length, mine, mine.length, theirs, count);
    return result === C.OPENSSL_NPN_NEGOTIATED ? C.SSL_TLSEXT_ERR_OK : C.SSL_TLSEXT_ERR_ALERT_FATAL;
  }

  /** Called in each handshake. */
  #identify(connection: Pointer): number {
    const { ssl } = this.#library;
    const identity = this.#inForce;
    if (identity === undefined) return 0;
    const { chain, trust, verifyMode, takesAny } = identity;
    ssl.SSL_certs_clear(connection);
    if (ssl.SSL_use_cert_and_key(connection, chain.leaf, chain.key, chain.chain, 1) !== 1) return 0;
    if (verifyMode === C.SSL_VERIFY_NONE) return 1;
    // A resumed session sends no certificate, but each connection must.
    ssl.SSL_set_num_tickets(connection, 0);
    if (trust !== undefined) ssl.setVerifyStore(connection, trust.pointer);
    ssl.SSL_set_verify(connection, verifyMode, takesAny ? this.#takeAny : 0);
    return 1;
  }
}

/** In ALPN's format, in octets that V8 does not move. */
export function protocolList(protocol: string): Uint8Array {
  const list = new Uint8Array(new ArrayBuffer(1 + protocol.length));
  list[0] = protocol.length;
  list.set(Buffer.from(protocol), 1);
  return list;
}
