/** Counters of HTTP listeners for clients that violate the protocol. */
import type { HttpObserver } from "../../transports/http-options.ts";
import type { ListenerPlace } from "./scheme-server.ts";

export function httpCounters({ metrics, label }: ListenerPlace): HttpObserver {
  const faults = metrics
    .counter({
      name: "portolan_http_faulty_connections_total",
      help: "Connections closed for protocol violations: broken frames, oversized headers, rapid stream resets.",
      labels: ["server"],
    })
    .slot(label);
  const timeouts = metrics.counter({
    name: "portolan_http_timeouts_total",
    help: "Requests not received in time, and responses not read in time.",
    labels: ["server", "what"],
  });
  const [request, response] = [timeouts.slot(label, "request"), timeouts.slot(label, "response")];
  return {
    onFault: () => faults.increment(),
    onTimeout: (what) => (what === "request" ? request : response).increment(),
  };
}
