/** Who wants copies of what other plugins exchange with upstreams (`dnstap`). */

import { ServiceKey } from "../contract/service.ts";
import type { Query } from "../query/query.ts";

export interface QueryTap {
  /** Whether it wants the exchanges of this query; all of them where there is no such method. */
  wants?(query: Query): boolean;
  /** An upstream answered, or did not. Nothing of it is kept. */
  forwarded(exchange: ForwardedExchange): void;
}

export interface ForwardedExchange {
  readonly query: Query;
  /** IP address of the upstream. */
  readonly upstream: string;
  readonly port: number;
  /** `udp`, `tcp`, `tcp-tls`, `https`, `quic`, `grpc`. */
  readonly protocol: string;
  /** `Clock.now()`, milliseconds. */
  readonly sentAt: number;
  /** When it answered, or was given up. */
  readonly endedAt: number;
  /** The message, with the id that the upstream was asked with; `undefined` where none came. */
  readonly reply: Uint8Array | undefined;
  /** Why none came. */
  readonly failure: Error | undefined;
  /** The query has left, as far as anybody knows. */
  readonly wasSent: boolean;
}

export const QUERY_TAP: ServiceKey<QueryTap> = new ServiceKey("query tap");
