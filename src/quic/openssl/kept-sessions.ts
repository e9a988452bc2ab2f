/**
 * Sessions that a client may resume for a shorter handshake (RFC 8446 section 2.2). A server sends them as tickets after the
 * handshake. No data is sent before the handshake is done (0-RTT): OpenSSL does not support it for QUIC, and it could be replayed.
 */
import type { Pointer, QuicLibrary } from "./library.ts";

/** Maximum number of servers; the oldest are dropped. */
const MAX_KEPT = 64;

export class KeptSessions {
  readonly #library: QuicLibrary;
  readonly #kept = new Map<string, Pointer>();

  constructor(library: QuicLibrary) {
    this.#library = library;
  }

  /** Keeps the session of a connection to a verified server, if there is a ticket for it. */
  keep(server: string, connection: Pointer): void {
    const { ssl } = this.#library;
    const session = ssl.SSL_get1_session(connection);
    if (session === 0) return;
    if (ssl.SSL_SESSION_is_resumable(session) !== 1) {
      ssl.SSL_SESSION_free(session);
      return;
    }
    this.#forget(server);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size >= MAX_KEPT && oldest !== undefined) this.#forget(oldest);
    this.#kept.set(server, session);
  }

  /**
   * Lets a new connection resume a session with its server. Each session is used once, so that observers cannot link two
   * connections of a client.
   */
  resume(server: string, connection: Pointer): void {
    const session = this.#kept.get(server);
    if (session === undefined) return;
    this.#library.ssl.SSL_set_session(connection, session);
    this.#forget(server);
  }

  free(): void {
    for (const server of [...this.#kept.keys()]) this.#forget(server);
  }

  #forget(server: string): void {
    const session = this.#kept.get(server);
    if (session === undefined) return;
    this.#kept.delete(server);
    this.#library.ssl.SSL_SESSION_free(session);
  }
}
