/** How long a change of endpoints took until it showed here (src/plugins/kubernetes/README.md). */

import type { HistogramFamily } from "../../../lib/metrics/metric-families.ts";
import type { MetricsRegistry } from "../../../lib/metrics/metrics.ts";
import type { Clock } from "../../../lib/time/clock.ts";
import type { EndpointSet } from "../../objects/objects.ts";
import type { ClusterStore } from "../../store/store.ts";

/** Seconds, 1 ms doubling twenty times. */
const BUCKETS: readonly number[] = Array.from({ length: 20 }, (_, power) => 0.001 * 2 ** power);

export class ProgrammingLatency {
  readonly #histogram: HistogramFamily;
  readonly #store: ClusterStore;
  readonly #clock: Clock;

  constructor(registry: MetricsRegistry, store: ClusterStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    this.#histogram = registry.histogram({
      name: "coredns_kubernetes_dns_programming_duration_seconds",
      help: "Time from a change of endpoints in the cluster until it shows in answers.",
      labels: ["service_kind"],
      buckets: BUCKETS,
    });
  }

  /**
   * Counts a slice that has just been put into the store.
   * @param time when its endpoints changed, as it says; empty where it does not
   */
  record(set: EndpointSet, time: string): void {
    if (time === "") return;
    const changedAt = Date.parse(time);
    const type = this.#store.services.find(set.namespace, set.service)?.type;
    if (Number.isNaN(changedAt) || type === undefined) return;
    const kind = type === "headless" ? "headless_with_selector" : "cluster_ip";
    this.#histogram.slot(kind).observe((this.#clock.wallTime() - changedAt) / 1000);
  }
}
