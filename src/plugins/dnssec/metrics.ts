import type { GaugeFamily } from "../../lib/metrics/metric-families.ts";
import type { CounterFamily, MetricsRegistry } from "../../plugin/index.ts";
import type { SignatureStore } from "./signature-store.ts";
import type { SignerCounters } from "./signer.ts";

/** The metrics of CoreDNS, and the memory of the signatures. */
export class DnssecMetrics {
  readonly #hits: CounterFamily;
  readonly #misses: CounterFamily;
  readonly #entries: GaugeFamily;
  readonly #octets: GaugeFamily;
  readonly #byServer = new Map<string, SignerCounters>();

  constructor(metrics: MetricsRegistry) {
    this.#hits = metrics.counter({
      name: "coredns_dnssec_cache_hits_total",
      help: "Signature cache hits.",
      labels: ["server"],
    });
    this.#misses = metrics.counter({
      name: "coredns_dnssec_cache_misses_total",
      help: "Signature cache misses.",
      labels: ["server"],
    });
    this.#entries = metrics.gauge({
      name: "coredns_dnssec_cache_entries",
      help: "Signatures in the cache.",
      acrossThreads: "sum",
      labels: ["server", "type"],
    });
    this.#octets = metrics.gauge({
      name: "portolan_dnssec_cache_bytes",
      help: "Memory used by cached signatures, in bytes.",
      acrossThreads: "sum",
      labels: ["server"],
    });
  }

  counters(server: string): SignerCounters {
    let counters = this.#byServer.get(server);
    if (counters === undefined) {
      counters = { hits: this.#hits.slot(server), misses: this.#misses.slot(server) };
      this.#byServer.set(server, counters);
    }
    return counters;
  }

  showStore(servers: readonly string[], store: SignatureStore): void {
    for (const server of servers) {
      this.#entries.slot(server, "signature").set(store.count);
      this.#octets.slot(server).set(store.size);
    }
  }
}
