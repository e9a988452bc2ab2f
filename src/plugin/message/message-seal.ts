/** Steps on the finished message: signatures (TSIG), copies (dnstap). */

/** Reads or changes a message after all other changes. Add it with `query.addSeal`. */
export interface MessageSeal {
  /** Octets that it may add behind the message; they are reserved within the client's limit. */
  readonly room: number;
  /**
   * Called for each message, in the order in which they are sent. An exception costs this answer: the client gets
   * SERVFAIL, or nothing if that fails, too.
   * @param bytes the message, and behind it {@link room} octets
   * @param length octets of the message
   * @returns the new length
   */
  seal(bytes: Uint8Array, length: number): number;
}
