/** The last octets of a message: signatures (TSIG), copies (dnstap). */

/** Sees or changes a message when nothing else will be changed in it any more. Add it with `query.addSeal`. */
export interface MessageSeal {
  /** Octets that it may add behind the message; they are kept free below the client's limit. */
  readonly room: number;
  /**
   * Called for each message, in the order in which they are sent. What is thrown costs this answer: the client gets SERVFAIL, and nothing
   * where that fails, too.
   * @param bytes the message, and behind it {@link room} octets
   * @param length octets of the message
   * @returns the length from now on
   */
  seal(bytes: Uint8Array, length: number): number;
}
