/** A plugin that copies the exchanges of other plugins with upstreams (`dnstap`). */

import { ServiceKey } from "../contract/service.ts";
import type { Query } from "../query/query.ts";

export interface QueryTap {
  /** Whether it wants the exchanges of this query; without this method it wants all of them. */
  wants?(query: Query): boolean;
  /** An upstream answered, or did not. The receiver keeps no reference. */
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
  /** The time of the answer, or of the failure. */
  readonly endedAt: number;
  /** The message, with the id that was sent to the upstream; `undefined` without an answer. */
  readonly reply: Uint8Array | undefined;
  /** The reason why there is no answer. */
  readonly failure: Error | undefined;
  /** Whether the query was sent, as far as known. */
  readonly wasSent: boolean;
}

export const QUERY_TAP: ServiceKey<QueryTap> = new ServiceKey("query tap");
