/** Counters of listeners and their sockets. */
import type { CounterSlot } from "../../lib/metrics/metric-slots.ts";
import type { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import type { ListenerCounters } from "./dns-listener.ts";
import type { TransportCounters } from "./scheme-server.ts";

/** @param label of the listener: `dns://:53` */
export function listenerCounters(metrics: MetricsRegistry, label: string): ListenerCounters {
  const rejected = metrics.counter({
    name: "portolan_dns_rejected_messages_total",
    help: "Messages answered FORMERR or NOTIMP before any plugin saw them.",
    labels: ["server"],
  });
  const irregular = metrics.counter({
    name: "portolan_dns_irregular_queries_total",
    help: "Queries answered despite trailing octets or fewer records than their header claims.",
    labels: ["server"],
  });
  return {
    shed: shed(metrics, label, "waiting"),
    rejected: rejected.slot(label),
    irregular: irregular.slot(label),
    ignored: ignored(metrics, label),
  };
}

export function transportCounters(metrics: MetricsRegistry, label: string): TransportCounters {
  const cutOff = metrics.counter({
    name: "portolan_dns_cut_datagrams_total",
    help: "Datagrams over 4096 octets; the excess is discarded.",
    labels: ["server"],
  });
  const ungreeted = metrics.counter({
    name: "portolan_dns_refused_greetings_total",
    help: "Connections and datagrams refused because their PROXY protocol header is malformed, missing or not allowed.",
    labels: ["server"],
  });
  return {
    ungreeted: ungreeted.slot(label),
    turnedAway: shed(metrics, label, "connection"),
    unread: shed(metrics, label, "unread"),
    unanswerable: ignored(metrics, label),
    cutOff: cutOff.slot(label),
  };
}

function ignored(metrics: MetricsRegistry, label: string): CounterSlot {
  const family = metrics.counter({
    name: "portolan_dns_ignored_messages_total",
    help: "Messages ignored without a reply: shorter than a header, replies, or sent from port 0.",
    labels: ["server"],
  });
  return family.slot(label);
}

function shed(metrics: MetricsRegistry, label: string, reason: string): CounterSlot {
  const family = metrics.counter({
    name: "portolan_dns_shed_total",
    help: "Load shed to stay within bounds: pending queries dropped (reason waiting), connections closed because too many were open (connection), or because their clients left replies unread or messages incomplete (unread).",
    labels: ["server", "reason"],
  });
  return family.slot(label, reason);
}
