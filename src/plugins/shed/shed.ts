import {
  afterNext,
  type CounterFamily,
  type CounterSlot,
  type Handler,
  type MetricsRegistry,
  type Outcome,
  type PluginInstance,
  type Query,
} from "../../plugin/index.ts";

/** Counts the queries that a listener dropped, the oldest first, because too many waited. */
export class Shed implements PluginInstance {
  readonly #dropped: CounterFamily;
  readonly #slots = new Map<string, CounterSlot>();

  constructor(metrics: MetricsRegistry) {
    this.#dropped = metrics.counter({
      name: "coredns_shed_dropped_total",
      help: "Queries over UDP dropped under load.",
      labels: ["server", "reason"],
    });
  }

  readonly handle: Handler = (query, next) => {
    // An internal lookup is not a query of a client.
    if (query.transport !== "udp" || query.depth > 0) return next(query);
    this.#slotOf(query);
    return afterNext(next(query), query, this.#count);
  };

  readonly #count = (outcome: Outcome, query: Query): Outcome => {
    if (query.root.isAbandoned) this.#slotOf(query).increment();
    return outcome;
  };

  /** Created with the first query, so that the series starts at 0. */
  #slotOf({ listener }: Query): CounterSlot {
    let slot = this.#slots.get(listener.label);
    if (slot === undefined) {
      slot = this.#dropped.slot(listener.label, "query");
      this.#slots.set(listener.label, slot);
    }
    return slot;
  }
}
