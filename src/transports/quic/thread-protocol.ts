/** What a QUIC listener's thread is told besides records, and what it tells. */
import type { QuicIdentity } from "../../quic/openssl/server-context.ts";

/** What is spoken over QUIC. */
export type QuicSpeech = "doq" | "h3";

export interface QuicLimits {
  /** Connections at one time. */
  readonly maxConnections: number;
  /** Streams that a client may have open at one time. */
  readonly maxStreams: number;
  /** Requests that wait for their answers at one time. */
  readonly maxRequests: number;
  /** Octets of requests that are not whole, of all connections. */
  readonly maxHeld: number;
  /** Octets of answers that clients have not taken, likewise. */
  readonly maxUnsent: number;
  /** Milliseconds for a handshake, and for all of a request. */
  readonly readTimeout: number;
  /** Milliseconds after which a connection without requests is closed. */
  readonly idleTimeout: number;
}

/** What the thread is started with. */
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
  /** Take no further requests; answer those that were taken. */
  | { readonly kind: "pause" }
  /** Send what is left, say good-bye, and end. */
  | { readonly kind: "close" };

export type FromQuicThread =
  | { readonly kind: "records"; readonly octets: Uint8Array }
  | { readonly kind: "ready" }
  /** There is no serving here; the thread ends. */
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "error"; readonly reason: string };
