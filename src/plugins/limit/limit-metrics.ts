import type { CounterSlot, MetricsRegistry } from "../../plugin/index.ts";
import type { LimitClass } from "./config.ts";

export const RESULTS = ["truncated", "refused", "dropped", "passed"] as const;
export type Result = (typeof RESULTS)[number];

/** By class and result, never by client: clients can invent addresses. */
export class LimitMetrics {
  readonly #counters = new Map<LimitClass, Readonly<Record<Result, CounterSlot>>>();

  constructor(classes: readonly LimitClass[], metrics: MetricsRegistry) {
    const exceeded = metrics.counter({
      name: "portolan_limit_exceeded_total",
      help: "Queries above a limit, by the class of the limit and the result.",
      labels: ["class", "result"],
    });
    for (const one of classes) {
      const [truncated, refused, dropped, passed] = RESULTS.map((result) => exceeded.slot(one, result));
      if (truncated && refused && dropped && passed)
        this.#counters.set(one, { truncated, refused, dropped, passed });
    }
  }

  count(one: LimitClass, result: Result): void {
    this.#counters.get(one)?.[result].increment();
  }
}

/** Tables of all server blocks, by their zones. @returns a function that ends the observation */
export function observeTable(
  table: () => { readonly size: number; readonly octets: number },
  zones: string,
  metrics: MetricsRegistry,
): () => void {
  const buckets = metrics.gauge({
    name: "portolan_limit_buckets",
    help: "Clients, times classes of limits, that the server keeps count of.",
    labels: ["zones"],
  });
  const octets = metrics.gauge({
    name: "portolan_limit_table_bytes",
    help: "Upper limit of the memory for the buckets, in bytes.",
    labels: ["zones"],
  });
  return metrics.onCollect(() => {
    buckets.slot(zones).set(table().size);
    octets.slot(zones).set(table().octets);
  });
}
