/** The identity of a server towards TLS clients: the contents of its certificate files at the last read. */
import type { SecureContext, SecureContextOptions } from "node:tls";

/** The server's policy for client certificates, in the words of Corefiles (src/plugins/tls/README.md). */
export type ClientAuthentication =
  | "nocert"
  | "request"
  | "require"
  | "verify_if_given"
  | "require_and_verify";

/** One state of the files. Immutable: new contents are a new identity. */
export interface ServerIdentity {
  /** Certificate chain, key, and the authorities for client certificates. */
  readonly context: SecureContextOptions;
  readonly clientAuthentication: ClientAuthentication;
  /** Alternative names; each client certificate must have one of them. */
  readonly allowedNames?: readonly string[] | undefined;
  /** Receives the session secrets, a line each, for decrypting captured traffic. */
  readonly keyLog: ((line: Uint8Array) => void) | undefined;
  /**
   * Selects the certificate for a server name (SNI, RFC 6066 section 3); the connection ends without one. Without
   * this function all clients get {@link context}, as do clients that send no name.
   */
  readonly select?: ((serverName: string) => SecureContext | undefined) | undefined;
}

/** Holds the identity in force: a listener reads it for each connection, or registers for changes. */
export class IdentityHolder {
  readonly #followers = new Set<() => void>();
  #current: ServerIdentity | undefined;

  /** `undefined` before there is a certificate: connections are closed until then. */
  get current(): ServerIdentity | undefined {
    return this.#current;
  }

  set current(identity: ServerIdentity | undefined) {
    this.#current = identity;
    for (const follower of this.#followers) follower();
  }

  /** @returns a function that ends it */
  onChange(follower: () => void): () => void {
    this.#followers.add(follower);
    return () => void this.#followers.delete(follower);
  }
}
