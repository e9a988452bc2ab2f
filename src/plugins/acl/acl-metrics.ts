/** The metrics of `acl`; names and labels are those of CoreDNS. */
import type { Name } from "../../dns/name.ts";
import type { CounterFamily, CounterSlot, MetricsRegistry, Query } from "../../plugin/index.ts";
import type { Action } from "./config.ts";

export type DenyingAction = Exclude<Action, "allow">;

/** The series of one listener and view. */
interface AclCounters {
  readonly server: string;
  readonly view: string;
  readonly allowed: CounterSlot;
  /** By zone, each created with its first denial. */
  readonly denied: Readonly<Record<DenyingAction, Map<Name, CounterSlot>>>;
}

export class AclMetrics {
  readonly #allowed: CounterFamily;
  readonly #denied: Readonly<Record<DenyingAction, CounterFamily>>;
  /** Consecutive queries mostly come from the same listener. */
  #last: AclCounters | undefined;
  readonly #known: AclCounters[] = [];

  constructor(metrics: MetricsRegistry) {
    const denied = (word: string): CounterFamily =>
      metrics.counter({
        name: `coredns_acl_${word}_requests_total`,
        help: `Queries that were ${word}.`,
        labels: ["server", "zone", "view"],
      });
    this.#allowed = metrics.counter({
      name: "coredns_acl_allowed_requests_total",
      help: "Queries that were allowed.",
      labels: ["server", "view"],
    });
    this.#denied = { block: denied("blocked"), filter: denied("filtered"), drop: denied("dropped") };
  }

  allowed(query: Query): CounterSlot {
    return this.#of(query).allowed;
  }

  denied(query: Query, action: DenyingAction, zone: Name): CounterSlot {
    const { server, view, denied } = this.#of(query);
    let slot = denied[action].get(zone);
    if (slot === undefined) {
      slot = this.#denied[action].slot(server, zone.toLowerCase().toString(), view);
      denied[action].set(zone, slot);
    }
    return slot;
  }

  #of(query: Query): AclCounters {
    const server = query.listener.label;
    const { view } = query;
    if (this.#last !== undefined && this.#last.server === server && this.#last.view === view)
      return this.#last;
    let counters = this.#known.find((one) => one.server === server && one.view === view);
    if (counters === undefined) {
      const allowed = this.#allowed.slot(server, view);
      counters = { server, view, allowed, denied: { block: new Map(), filter: new Map(), drop: new Map() } };
      this.#known.push(counters);
    }
    this.#last = counters;
    return counters;
  }
}
