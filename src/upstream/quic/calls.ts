/** What passes between the threads of DNS over QUIC to upstreams. */
import type { QuicTrust } from "../../quic/openssl/client-context.ts";

/** To the thread that speaks QUIC. Connections and queries are numbered by who begins them. */
export const Call = {
  /** Begins a connection to the {@link CallPlace} in the payload. */
  DIAL: 1,
  /** A query on a stream of its own. */
  ASK: 2,
  /** Nobody waits for the answer any more. */
  CANCEL: 3,
  HANG_UP: 4,
} as const;

/** From it. */
export const CallReport = {
  CONNECTED: 1,
  ANSWERED: 2,
  /** There is no answer; the payload says why. */
  FAILED: 3,
  /** The connection is over, or was not to be had; the payload says why. Of its queries nothing more is heard. */
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

/** Records, or that all is over. */
export type ToCallThread = Uint8Array | null;

export type FromCallThread =
  | { readonly kind: "done" }
  | { readonly kind: "records"; readonly octets: Uint8Array }
  /** There is no QUIC here; the thread ends. */
  | { readonly kind: "refused"; readonly reason: string };
