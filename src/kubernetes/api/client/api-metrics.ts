/** Metrics of the API client (src/plugins/kubernetes/README.md). */
import type { CounterFamily, HistogramFamily } from "../../../lib/metrics/metric-families.ts";
import type { MetricsRegistry } from "../../../lib/metrics/metrics.ts";

/** Seconds: the default buckets of Prometheus' libraries. */
const DEFAULT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export class ApiMetrics {
  readonly #duration: HistogramFamily;
  readonly #limiter: HistogramFamily;
  readonly #requests: CounterFamily;

  constructor(registry: MetricsRegistry) {
    this.#duration = registry.histogram({
      name: "coredns_kubernetes_rest_client_request_duration_seconds",
      help: "Time from a request to the API server until the headers of its answer.",
      labels: ["verb", "host"],
      buckets: DEFAULT_BUCKETS,
    });
    this.#limiter = registry.histogram({
      name: "coredns_kubernetes_rest_client_rate_limiter_duration_seconds",
      help: "Time that requests to the API server waited for their turn.",
      labels: ["verb", "host"],
      buckets: DEFAULT_BUCKETS,
    });
    this.#requests = registry.counter({
      name: "coredns_kubernetes_rest_client_requests_total",
      help: "Requests to the API server by status code; <error> where there was no answer.",
      labels: ["code", "method", "host"],
    });
  }

  waited(host: string, ms: number): void {
    this.#limiter.slot("GET", host).observe(ms / 1000);
  }

  answered(host: string, code: number, ms: number): void {
    this.#duration.slot("GET", host).observe(ms / 1000);
    this.#requests.slot(String(code), "GET", host).increment();
  }

  failed(host: string, ms: number): void {
    this.#duration.slot("GET", host).observe(ms / 1000);
    this.#requests.slot("<error>", "GET", host).increment();
  }
}
