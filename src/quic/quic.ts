/**
 * QUIC as protocols on top of it see it: connections, and streams of octets on them (RFC 9000). OpenSSL's stands behind it
 * (`openssl/`); `node:quic` can, once official builds of Node have it.
 */

/** The other end of a connection. */
export interface QuicPeer {
  /** IP address as text; an IPv4 address is never shown as mapped. */
  readonly address: string;
  readonly port: number;
}

export interface QuicConnection {
  readonly peer: QuicPeer;
  /** False once either end has closed it. */
  readonly isOpen: boolean;
  /** False while the handshake is under way. */
  readonly isConnected: boolean;
  /** Streams of the peer that are not over. */
  readonly openStreams: number;
  /** @returns `undefined` where the peer allows no further stream now, or the connection is closed */
  openStream(unidirectional: boolean, user: QuicStreamUser): QuicStream | undefined;
  /**
   * Ends it at once.
   * @param code of the application; RFC 9250 section 4.3 and RFC 9114 section 8.1 have some
   * @param reason for who reads the other side's log
   */
  close(code: number, reason?: string): void;
  /** Ends it as soon as the peer has what was sent, or had time to take it. */
  finish(code: number): void;
}

/** Who speaks a protocol on a connection. Nothing is called from within a call into the connection, except from `close`. */
export interface QuicConnectionUser {
  /** The handshake is done. */
  connected(): void;
  /** The peer has opened a stream. */
  accepted(stream: QuicStream): QuicStreamUser;
  /** The connection is over, with all its streams: those hear nothing more. */
  closed(reason: QuicClosed): void;
}

export interface QuicClosed {
  /** Who ended it; nobody where it fell silent or broke. */
  readonly by: "us" | "peer" | "nobody";
  /** Of the application; `undefined` where the transport closed it. */
  readonly code: number | undefined;
  /** What the transport or the peer says, for people. */
  readonly text: string;
}

export interface QuicStream {
  readonly connection: QuicConnection;
  readonly id: number;
  /** Octets go one way alone. */
  readonly isUnidirectional: boolean;
  /** Takes octets to be sent. With the last of them the stream is over, whatever the peer still sends on it. */
  write(octets: Uint8Array, isLast: boolean): void;
  /** Gives up sending, and reading. */
  reset(code: number): void;
}

export interface QuicStreamUser {
  /** @param octets lent until this returns; none where only the end has come */
  received(octets: Uint8Array, isLast: boolean): void;
  /** The peer gave up sending, or wants to hear no more. */
  lost(): void;
}
