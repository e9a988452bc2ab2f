/** The metrics of `cache`. */

import type { GaugeFamily } from "../../lib/metrics/metric-families.ts";
import type { CounterFamily, CounterSlot, GaugeSlot, MetricsRegistry } from "../../plugin/index.ts";
import type { RepeatedQuery } from "../../plugin/query/repetition.ts";

/** The series of one listener and view. */
export interface CacheCounters {
  readonly requests: CounterSlot;
  readonly successHits: CounterSlot;
  readonly denialHits: CounterSlot;
  readonly misses: CounterSlot;
  readonly prefetches: CounterSlot;
  readonly drops: CounterSlot;
  readonly servedStale: CounterSlot;
  readonly successEvictions: CounterSlot;
  readonly denialEvictions: CounterSlot;
  readonly successEntries: GaugeSlot;
  readonly denialEntries: GaugeSlot;
  readonly successMemory: GaugeSlot;
  readonly denialMemory: GaugeSlot;
}

/** Contents of one of the two caches. */
export interface Holding {
  /** Entries. */
  readonly size: number;
  /** Bytes of memory in use. */
  readonly octetsTouched: number;
}

/** Names and labels are those of CoreDNS. */
export class CacheMetrics {
  /** How often all answers were dropped because memory was damaged. */
  readonly emptied: CounterSlot;
  readonly #zones: string;
  readonly #families: Families;
  readonly #known = new Map<string, CacheCounters>();
  #lastServer = "";
  #lastView = "";
  #last: CacheCounters | undefined;

  /** @param zones value of the label `zones` */
  constructor(metrics: MetricsRegistry, zones: string) {
    this.#zones = zones;
    this.#families = declareFamilies(metrics);
    this.emptied = metrics
      .counter({
        name: "portolan_cache_damages_total",
        help: "Times that all answers were dropped because memory was damaged or a thread ended during a write.",
        labels: ["zones"],
      })
      .slot(zones);
  }

  /** Returns the counters for a query. Consecutive queries mostly come from the same listener. */
  of(query: Pick<RepeatedQuery, "listener" | "view">): CacheCounters {
    const server = query.listener.label;
    const { view } = query;
    if (this.#last !== undefined && server === this.#lastServer && view === this.#lastView) return this.#last;
    const key = `${server} ${view}`;
    let counters = this.#known.get(key);
    if (counters === undefined) {
      counters = this.#resolve(server, view);
      this.#known.set(key, counters);
    }
    this.#lastServer = server;
    this.#lastView = view;
    this.#last = counters;
    return counters;
  }

  /** All listeners and views seen so far answer from the same entries. */
  setHoldings(success: Holding, denial: Holding): void {
    for (const counters of this.#known.values()) {
      counters.successEntries.set(success.size);
      counters.denialEntries.set(denial.size);
      counters.successMemory.set(success.octetsTouched);
      counters.denialMemory.set(denial.octetsTouched);
    }
  }

  #resolve(server: string, view: string): CacheCounters {
    const zones = this.#zones;
    const { requests, hits, misses, prefetches, drops, servedStale, evictions, entries, memory } =
      this.#families;
    return {
      requests: requests.slot(server, zones, view),
      successHits: hits.slot(server, "success", zones, view),
      denialHits: hits.slot(server, "denial", zones, view),
      misses: misses.slot(server, zones, view),
      prefetches: prefetches.slot(server, zones, view),
      drops: drops.slot(server, zones, view),
      servedStale: servedStale.slot(server, zones, view),
      successEvictions: evictions.slot(server, "success", zones, view),
      denialEvictions: evictions.slot(server, "denial", zones, view),
      successEntries: entries.slot(server, "success", zones, view),
      denialEntries: entries.slot(server, "denial", zones, view),
      successMemory: memory.slot(server, "success", zones, view),
      denialMemory: memory.slot(server, "denial", zones, view),
    };
  }
}

interface Families {
  readonly requests: CounterFamily;
  readonly hits: CounterFamily;
  readonly misses: CounterFamily;
  readonly prefetches: CounterFamily;
  readonly drops: CounterFamily;
  readonly servedStale: CounterFamily;
  readonly evictions: CounterFamily;
  readonly entries: GaugeFamily;
  readonly memory: GaugeFamily;
}

const LABELS = ["server", "zones", "view"];
const LABELS_WITH_TYPE = ["server", "type", "zones", "view"];

function declareFamilies(metrics: MetricsRegistry): Families {
  const counter = (name: string, help: string, labels = LABELS): CounterFamily =>
    metrics.counter({ name: `coredns_cache_${name}`, help, labels });
  return {
    requests: counter("requests_total", "Queries looked up in the cache."),
    hits: counter("hits_total", "Queries answered from the cache.", LABELS_WITH_TYPE),
    misses: counter("misses_total", "Queries not found in the cache."),
    prefetches: counter("prefetch_total", "Answers refreshed in the background before they expired."),
    drops: counter("drops_total", "Replies not cached because they were for another question."),
    servedStale: counter("served_stale_total", "Queries answered with an expired answer."),
    evictions: counter("evictions_total", "Answers evicted to make room for others.", LABELS_WITH_TYPE),
    entries: metrics.gauge({
      name: "coredns_cache_entries",
      help: "Answers in the cache.",
      // All threads share the answers. Each knows only the listeners and views that brought it a query.
      acrossThreads: "max",
      labels: LABELS_WITH_TYPE,
    }),
    memory: metrics.gauge({
      name: "portolan_memory_cache_bytes",
      help: "Memory used by the cache, in bytes.",
      acrossThreads: "max",
      labels: LABELS_WITH_TYPE,
    }),
  };
}
