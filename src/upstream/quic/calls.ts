/** The messages between the threads of DNS over QUIC to upstreams. */
import type { QuicTrust } from "../../quic/openssl/client-context.ts";

/** To the QUIC thread. The caller numbers connections and queries. */
export const Call = {
  /** Opens a connection to the {@link CallPlace} in the payload. */
  DIAL: 1,
  /** A query on its own stream. */
  ASK: 2,
  /** Abandons a query. */
  CANCEL: 3,
  HANG_UP: 4,
} as const;

/** From the QUIC thread. */
export const CallReport = {
  CONNECTED: 1,
  ANSWERED: 2,
  /** The query failed; the payload has the reason. */
  FAILED: 3,
  /** The connection ended or could not be opened; the payload has the reason. Its queries get no further records. */
  LOST: 4,
} as const;

export interface CallPlace {
  readonly address: string;
  readonly port: number;
  readonly sourceAddress: string | undefined;
  readonly serverName: string | undefined;
  readonly certifiedName: string;
}

export interface CallThreadSettings {
  readonly trust: QuicTrust;
}

/** Records, or the signal to end. */
export type ToCallThread = Uint8Array | null;

export type FromCallThread =
  | { readonly kind: "done" }
  | { readonly kind: "records"; readonly octets: Uint8Array }
  /** QUIC is unavailable; the thread ends. */
  | { readonly kind: "refused"; readonly reason: string };
