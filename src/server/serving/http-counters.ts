/** What listeners of HTTP count of clients that do not keep to it. */
import type { HttpObserver } from "../../transports/http-options.ts";
import type { ListenerPlace } from "./scheme-server.ts";

export function httpCounters({ metrics, label }: ListenerPlace): HttpObserver {
  const faults = metrics
    .counter({
      name: "portolan_http_faulty_connections_total",
      help: "Connections ended because of what their client sent: broken frames, headers that are too large, streams reset in quick succession.",
      labels: ["server"],
    })
    .slot(label);
  const timeouts = metrics.counter({
    name: "portolan_http_timeouts_total",
    help: "Requests that were not whole in time, and responses that were not taken in time.",
    labels: ["server", "what"],
  });
  const [request, response] = [timeouts.slot(label, "request"), timeouts.slot(label, "response")];
  return {
    onFault: () => faults.increment(),
    onTimeout: (what) => (what === "request" ? request : response).increment(),
  };
}
