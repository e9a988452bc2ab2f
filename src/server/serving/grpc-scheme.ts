/** `grpc://`: DNS over gRPC. Without a certificate (`tls`) it is HTTP/2 in the clear. */
import { listenGrpc } from "../../transports/grpc.ts";
import { httpCounters } from "./http-counters.ts";
import { OwnBudget } from "./own-budget.ts";
import type { SchemeServer } from "./scheme-server.ts";
import { connectionOctets, layersBelow, tlsLayer } from "./tls-scheme.ts";

export const grpcScheme: SchemeServer = {
  transports: ["grpc"],
  async open(name, { port, reusePort }, place) {
    const { host, clock, settings, counters } = place;
    const tls = tlsLayer(place, ["h2"]);
    const budget = new OwnBudget(place, () => settings().maxGrpcConnections);
    return listenGrpc({ host, port }, place.receiver(name), {
      clock,
      ...httpCounters(place),
      budget: budget.refreshed(),
      layers: () => {
        budget.refreshed();
        return layersBelow(place, tls);
      },
      connectionOctets: connectionOctets(place),
      maxStreams: () => settings().maxGrpcStreams,
      timeouts: () => ({ read: settings().readTimeout, write: settings().writeTimeout }),
      reusePort,
      onUnread: () => counters.unread.increment(),
      openSocket: await place.tcpSockets(),
      onTurnedAway: () => {
        counters.turnedAway.increment();
        place.onCrowded(budget.reached);
      },
    });
  },
};
