/** `https3://`: DNS over HTTP/3, by the OpenSSL inside Node, in a thread of its own. */
import { listenDoh3 } from "../../transports/quic/doh3.ts";
import { followingSettings, MAX_QUIC_CONNECTIONS, octetLimits, quicOptions } from "./quic-scheme.ts";
import type { SchemeServer } from "./scheme-server.ts";

/** The most that OpenSSL grants a client. */
const MAX_STREAMS = 100;
/** The same number as the pending queries of a listener. */
const MAX_REQUESTS = 10_000;

export const https3Scheme: SchemeServer = {
  transports: ["https3"],
  async open(name, { port, reusePort }, place) {
    const { label, host, metrics, settings } = place;
    const responses = metrics.counter({
      name: "coredns_dns_https3_responses_total",
      help: "Responses of DNS over HTTP/3, by status.",
      labels: ["server", "status"],
    });
    const options = quicOptions(place);
    const transport = await listenDoh3({ host, port }, place.receiver(name), {
      ...options,
      counters: { ...options.counters, protocolError: () => undefined },
      reusePort,
      limits() {
        const { maxHttps3Connections, maxHttps3Streams, readTimeout, idleTimeout } = settings();
        return {
          maxConnections: maxHttps3Connections || MAX_QUIC_CONNECTIONS,
          maxStreams: maxHttps3Streams || MAX_STREAMS,
          maxRequests: MAX_REQUESTS,
          ...octetLimits(place),
          readTimeout,
          idleTimeout,
        };
      },
      onResponse: (status) => responses.slot(label, String(status)).increment(),
    });
    return followingSettings(transport, place);
  },
};
