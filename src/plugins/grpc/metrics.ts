import { rcodeName } from "../../dns/index.ts";
import { DURATION_BUCKETS, type HistogramFamily } from "../../lib/metrics/metric-families.ts";
import type { CounterFamily, MetricsRegistry } from "../../plugin/index.ts";

/** The counters of CoreDNS for queries answered by an upstream. */
export class GrpcMetrics {
  readonly #requests: CounterFamily;
  readonly #responses: CounterFamily;
  readonly #durations: HistogramFamily;

  constructor(registry: MetricsRegistry) {
    this.#requests = registry.counter({
      name: "coredns_grpc_requests_total",
      help: "Queries answered by an upstream over gRPC.",
      labels: ["to"],
    });
    this.#responses = registry.counter({
      name: "coredns_grpc_responses_total",
      help: "Answers of an upstream over gRPC, by rcode.",
      labels: ["rcode", "to"],
    });
    this.#durations = registry.histogram({
      name: "coredns_grpc_request_duration_seconds",
      help: "Duration of each exchange over gRPC, in seconds.",
      labels: ["to"],
      buckets: DURATION_BUCKETS,
    });
  }

  /** @param milliseconds from sending to answer */
  answered(to: string, rcode: number, milliseconds: number): void {
    this.#requests.slot(to).increment();
    this.#responses.slot(rcodeName(rcode), to).increment();
    this.#durations.slot(to).observe(milliseconds / 1000);
  }
}
