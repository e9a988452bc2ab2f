/** Exemplars: traces of the latencies in a histogram (`prometheus`). */

import { ServiceKey } from "../contract/service.ts";
import type { Query } from "../query/query.ts";

export interface LatencyExemplars {
  /**
   * A query took `duration` milliseconds, and has a trace.
   * @param traceId 32 hexadecimal digits, or 16
   */
  keep(query: Query, duration: number, traceId: string): void;
}

export const LATENCY_EXEMPLARS: ServiceKey<LatencyExemplars> = new ServiceKey("latency exemplars");
