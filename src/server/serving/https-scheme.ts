/** `https://`: DNS over HTTPS (RFC 8484). Without a certificate (`tls`) it is HTTP/1.1 in the clear, as CoreDNS has it. */
import { listenHttps } from "../../transports/https.ts";
import { httpCounters } from "./http-counters.ts";
import { OwnBudget } from "./own-budget.ts";
import type { SchemeServer } from "./scheme-server.ts";
import { connectionOctets, layersBelow, tlsLayer } from "./tls-scheme.ts";

export const httpsScheme: SchemeServer = {
  transports: ["https"],
  async open(name, { port, reusePort }, place) {
    const { label, host, clock, settings, metrics, counters } = place;
    const tls = tlsLayer(place, ["h2", "http/1.1"]);
    const budget = new OwnBudget(place, () => settings().maxHttpsConnections);
    const responses = metrics.counter({
      name: "coredns_dns_https_responses_total",
      help: "Responses of DNS over HTTPS, by status.",
      labels: ["server", "status"],
    });
    const answered = responses.slot(label, "200");
    return listenHttps({ host, port }, place.receiver(name), {
      clock,
      ...httpCounters(place),
      budget: budget.refreshed(),
      layers: () => {
        budget.refreshed();
        return layersBelow(place, tls);
      },
      connectionOctets: connectionOctets(place),
      maxStreams: () => settings().maxHttpsStreams,
      timeouts: () => {
        const { readTimeout, writeTimeout, idleTimeout } = settings();
        return { read: readTimeout, write: writeTimeout, idle: idleTimeout };
      },
      reusePort,
      openSocket: await place.tcpSockets(),
      onTurnedAway: () => {
        counters.turnedAway.increment();
        place.onCrowded(budget.reached);
      },
      onUnread: () => counters.unread.increment(),
      onResponse: (status) => (status === 200 ? answered : responses.slot(label, String(status))).increment(),
    });
  },
};
