import { rcodeName } from "../../dns/numbers.ts";
import {
  type CounterFamily,
  DURATION_BUCKETS,
  type HistogramFamily,
} from "../../lib/metrics/metric-families.ts";
import type { CounterSlot, HistogramSlot } from "../../lib/metrics/metric-slots.ts";
import type { MetricsRegistry } from "../../lib/metrics/metrics.ts";

/** The counters of an exchange. */
export interface ExchangeMetrics {
  /** Queries that used an open socket or connection. */
  readonly hits: CounterSlot;
  /** Queries that had to open one. */
  readonly misses: CounterSlot;
  /** Dropped messages: shorter than a header. */
  readonly short: CounterSlot;
  /** Dropped messages: their id is not in use on the socket they arrived at. */
  readonly unknownId: CounterSlot;
  /** Dropped messages: the id of a pending query, but another question. */
  readonly otherQuestion: CounterSlot;
  /** Replies that spell the question in another case; dropped only if the case was randomized. */
  readonly otherCase: CounterSlot;
}

/** The metrics of all upstreams of one plugin (docs/spec/coredns-behaviour.md#upstream-connections). */
export class UpstreamMetrics {
  readonly #proxyName: string;
  readonly #duration: HistogramFamily;
  readonly #healthcheckFailures: CounterFamily;
  readonly #hits: CounterFamily;
  readonly #misses: CounterFamily;
  readonly #discarded: CounterFamily;
  readonly #irregular: CounterFamily;

  /** @param proxyName the plugin's name */
  constructor(registry: MetricsRegistry, proxyName: string) {
    this.#proxyName = proxyName;
    this.#duration = registry.histogram({
      name: "coredns_proxy_request_duration_seconds",
      help: "Duration of each exchange with an upstream, in seconds.",
      labels: ["proxy_name", "to", "rcode"],
      buckets: DURATION_BUCKETS,
    });
    this.#healthcheckFailures = registry.counter({
      name: "coredns_proxy_healthcheck_failures_total",
      help: "Failed health checks of an upstream.",
      labels: ["proxy_name", "to"],
    });
    this.#hits = registry.counter({
      name: "coredns_proxy_conn_cache_hits_total",
      help: "Queries that reused an open socket or connection to their upstream.",
      labels: ["proxy_name", "to", "proto"],
    });
    this.#misses = registry.counter({
      name: "coredns_proxy_conn_cache_misses_total",
      help: "Queries that had to open a socket or connection to their upstream.",
      labels: ["proxy_name", "to", "proto"],
    });
    this.#discarded = registry.counter({
      name: "portolan_proxy_discarded_messages_total",
      help: "Dropped messages from an upstream's address: too short, with an unknown id, or about another question.",
      labels: ["proxy_name", "to", "proto", "reason"],
    });
    this.#irregular = registry.counter({
      name: "portolan_proxy_irregular_replies_total",
      help: "Irregular replies that were still used: the question in another case, octets after the last record, or fewer additional records than claimed.",
      labels: ["proxy_name", "to", "reason"],
    });
  }

  exchange(to: string, protocol: string): ExchangeMetrics {
    const name = this.#proxyName;
    return {
      hits: this.#hits.slot(name, to, protocol),
      misses: this.#misses.slot(name, to, protocol),
      short: this.#discarded.slot(name, to, protocol, "short"),
      unknownId: this.#discarded.slot(name, to, protocol, "id"),
      otherQuestion: this.#discarded.slot(name, to, protocol, "question"),
      otherCase: this.#irregular.slot(name, to, "case"),
    };
  }

  /** Replies whose counts and octets do not match. */
  irregularLengths(to: string): CounterSlot {
    return this.#irregular.slot(this.#proxyName, to, "length");
  }

  healthcheckFailures(to: string): CounterSlot {
    return this.#healthcheckFailures.slot(this.#proxyName, to);
  }

  durations(to: string): RcodeDurations {
    return new RcodeDurations(this.#duration, this.#proxyName, to);
  }
}

/** Durations of exchanges with one upstream by rcode. Each slot is looked up once. */
export class RcodeDurations {
  readonly #family: HistogramFamily;
  readonly #proxyName: string;
  readonly #to: string;
  readonly #slots: (HistogramSlot | undefined)[] = [];

  constructor(family: HistogramFamily, proxyName: string, to: string) {
    this.#family = family;
    this.#proxyName = proxyName;
    this.#to = to;
  }

  /** @param milliseconds from sending to answer */
  observe(rcode: number, milliseconds: number): void {
    let slot = this.#slots[rcode];
    if (slot === undefined) {
      slot = this.#family.slot(this.#proxyName, this.#to, rcodeName(rcode));
      this.#slots[rcode] = slot;
    }
    slot.observe(milliseconds / 1000);
  }
}
