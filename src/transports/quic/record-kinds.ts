/** Kinds of the records that pass between the thread of a QUIC listener and the one that answers. */

/** From the thread of the listener. */
export const Report = {
  /** A connection is there: its peer's address, and the port in place of a stream. */
  CONNECTED: 1,
  CLOSED: 2,
  /** Something to answer came on a stream. */
  REQUEST: 3,
  /** A peer broke the protocol, which cost its connection. */
  PROTOCOL_ERROR: 4,
  /** A connection had to go, or could not be made, because there are too many. */
  TURNED_AWAY: 5,
  /** An answer was given up because too much is unread. */
  UNREAD: 6,
  /** A connection ended before its handshake was done. */
  FAILED_HANDSHAKE: 7,
  /** Secrets of a connection, for who decrypts what was recorded. */
  KEYS: 8,
} as const;

/** To the thread of the listener. */
export const Order = {
  /** Octets to send on a stream, which ends with them. */
  ANSWER: 1,
  /** There is no answer: the stream is reset with the code in the first four octets. */
  RESET: 2,
  /** The connection is closed with the code in the first four octets. */
  CLOSE: 3,
} as const;
