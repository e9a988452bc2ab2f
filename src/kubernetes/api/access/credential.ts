/** What goes along with each request to say who asks, whatever it comes from. */

export interface Credential {
  /** The value of the header `Authorization`. */
  readonly authorization?: string;
  /** PEM, where a program hands out a certificate of its own. */
  readonly certificate?: string;
  readonly key?: string;
}

export interface Credentials {
  /** @throws CredentialError */
  current(): Promise<Credential>;
  /** The server would not have the last one. */
  refused(): void;
}
