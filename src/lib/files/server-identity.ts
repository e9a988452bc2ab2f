/** Who a server is towards TLS clients: what its certificate files held when they were read last. */
import type { SecureContext, SecureContextOptions } from "node:tls";

/** What a server asks of its clients' certificates, in the words of Corefiles (src/plugins/tls/README.md). */
export type ClientAuthentication =
  | "nocert"
  | "request"
  | "require"
  | "verify_if_given"
  | "require_and_verify";

/** One state of the files. It does not change: other contents are another identity. */
export interface ServerIdentity {
  /** Certificate chain, key, and the authorities that clients' certificates are checked against. */
  readonly context: SecureContextOptions;
  readonly clientAuthentication: ClientAuthentication;
  /** Alternative names, one of which the certificate of each client has to have. */
  readonly allowedNames?: readonly string[] | undefined;
  /** Takes the secrets of sessions, a line each, for who decrypts what was recorded. */
  readonly keyLog: ((line: Uint8Array) => void) | undefined;
  /**
   * What a client gets that says which name it wants (SNI, RFC 6066 section 3); the connection of one that gets nothing ends. Without this
   * all clients get {@link context}, as do those that say none.
   */
  readonly select?: ((serverName: string) => SecureContext | undefined) | undefined;
}

/** Where a listener finds the identity in force: it asks anew for each connection, or is told when it changes. */
export class IdentityHolder {
  readonly #followers = new Set<() => void>();
  #current: ServerIdentity | undefined;

  /** `undefined` before there is a certificate: connections end meanwhile. */
  get current(): ServerIdentity | undefined {
    return this.#current;
  }

  set current(identity: ServerIdentity | undefined) {
    this.#current = identity;
    for (const follower of this.#followers) follower();
  }

  /** @returns what ends it */
  onChange(follower: () => void): () => void {
    this.#followers.add(follower);
    return () => void this.#followers.delete(follower);
  }
}
