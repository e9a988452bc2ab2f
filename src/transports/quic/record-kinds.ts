/** Kinds of records between the thread of a QUIC listener and the answering one. */

/** From the listener's thread. */
export const Report = {
  /** A new connection: its peer's address, and the port in place of a stream. */
  CONNECTED: 1,
  CLOSED: 2,
  /** A request on a stream. */
  REQUEST: 3,
  /** A peer broke the protocol, and its connection was closed. */
  PROTOCOL_ERROR: 4,
  /** A connection was closed or refused because there are too many. */
  TURNED_AWAY: 5,
  /** A connection was closed because all of them together had too many unread answers, and this one the most. */
  UNREAD: 6,
  /** A connection ended before its handshake was done. */
  FAILED_HANDSHAKE: 7,
  /** Secrets of a connection, for decrypting a packet capture. */
  KEYS: 8,
  /** Octets that all connections hold, in the payload (32 bits): incomplete requests, and unread answers. */
  HELD: 9,
} as const;

/** To the listener's thread. */
export const Order = {
  /** Octets to send on a stream, followed by its end. */
  ANSWER: 1,
  /** There is no answer: the stream is reset with the code in the first four octets. */
  RESET: 2,
  /** The connection is closed with the code in the first four octets. */
  CLOSE: 3,
} as const;
