/**
 * QUIC for the protocols on top of it: connections and their streams (RFC 9000). OpenSSL implements it (`openssl/`); `node:quic`
 * can, once official builds of Node have it.
 */

/** The other end of a connection. */
export interface QuicPeer {
  /** IP address as text; IPv4-mapped addresses appear as IPv4. */
  readonly address: string;
  readonly port: number;
}

export interface QuicConnection {
  readonly peer: QuicPeer;
  /** False once either end has closed it. */
  readonly isOpen: boolean;
  /** False during the handshake. */
  readonly isConnected: boolean;
  /** Unfinished streams of the peer. */
  readonly openStreams: number;
  /** Octets held for the peer: its streams that are not finished, and what it has not acknowledged. */
  readonly held: number;
  /** @returns `undefined` if the peer allows no further stream now, or the connection is closed */
  openStream(unidirectional: boolean, user: QuicStreamUser): QuicStream | undefined;
  /**
   * Closes it at once.
   * @param code of the application; RFC 9250 section 4.3 and RFC 9114 section 8.1 have some
   * @param reason for the log of the other side
   */
  close(code: number, reason?: string): void;
  /** Closes it once the peer has acknowledged all data, or after a timeout. */
  finish(code: number): void;
}

/** The protocol on a connection. No method is called from within a call into the connection, except for `close`. */
export interface QuicConnectionUser {
  /** The handshake is done. */
  connected(): void;
  /** The peer has opened a stream. */
  accepted(stream: QuicStream): QuicStreamUser;
  /** The connection is over, with all its streams, which get no further events. */
  closed(reason: QuicClosed): void;
}

export interface QuicClosed {
  /** The side that ended it; or neither, if it timed out or failed. */
  readonly by: "us" | "peer" | "nobody";
  /** Of the application; `undefined` if the transport closed it. */
  readonly code: number | undefined;
  /** The text of the transport or the peer, for people. */
  readonly text: string;
}

export interface QuicStream {
  readonly connection: QuicConnection;
  readonly id: number;
  /** Whether data flows in one direction only. */
  readonly isUnidirectional: boolean;
  /** Sends octets. After the last ones the stream is finished, whatever the peer still sends on it. */
  write(octets: Uint8Array, isLast: boolean): void;
  /** Stops sending and reading. */
  reset(code: number): void;
}

export interface QuicStreamUser {
  /** @param octets lent until this returns; empty for the end alone */
  received(octets: Uint8Array, isLast: boolean): void;
  /** The peer reset the stream, or stopped reading. */
  lost(): void;
}
