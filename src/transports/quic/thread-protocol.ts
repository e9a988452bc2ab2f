/** Messages to and from a QUIC listener's thread, besides records. */
import type { QuicIdentity } from "../../quic/openssl/server-context.ts";

/** The protocol over QUIC. */
export type QuicSpeech = "doq" | "h3";

export interface QuicLimits {
  /** Simultaneous connections. */
  readonly maxConnections: number;
  /** Open streams per client. */
  readonly maxStreams: number;
  /** Requests that wait for their answers. */
  readonly maxRequests: number;
  /** Octets of incomplete requests of all connections. */
  readonly maxHeld: number;
  /** Octets of streams and unread answers of all connections. */
  readonly maxUnsent: number;
  /** Octets of the connections themselves. */
  readonly maxOctets: number;
  /** Milliseconds for a handshake, and for a whole request. */
  readonly readTimeout: number;
  /** Milliseconds after which a connection without requests is closed. */
  readonly idleTimeout: number;
}

/** Start parameters of the thread. */
export interface QuicThreadSettings {
  readonly speech: QuicSpeech;
  readonly fd: number;
  readonly family: 4 | 6;
  readonly isWildcard: boolean;
  readonly limits: QuicLimits;
  readonly identity: QuicIdentity | undefined;
}

export type ToQuicThread =
  | { readonly kind: "records"; readonly octets: Uint8Array }
  | { readonly kind: "limit"; readonly limits: QuicLimits }
  | { readonly kind: "identify"; readonly identity: QuicIdentity | undefined }
  /** Accept no further requests; answer the accepted ones. */
  | { readonly kind: "pause" }
  /** Send the rest, announce the end, and exit. */
  | { readonly kind: "close" };

export type FromQuicThread =
  | { readonly kind: "records"; readonly octets: Uint8Array }
  | { readonly kind: "ready" }
  /** The thread cannot serve, and ends. */
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "error"; readonly reason: string };
