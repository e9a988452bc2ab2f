/** `dns://`: plain DNS on UDP and TCP (RFC 1035 section 4.2). */
import type { BlockSettings } from "../../plugin/site.ts";
import type { FramedOptions, StreamLimits } from "../../transports/framed-connection.ts";
import { listenTcp } from "../../transports/tcp.ts";
import type { ListenerPlace, SchemeServer } from "./schemes.ts";

export const dnsScheme: SchemeServer = {
  transports: ["tcp", "udp"],
  async open(name, { port, reusePort }, place) {
    const { host, counters, onError } = place;
    if (name === "udp") {
      const listen = await place.listenUdp();
      return listen({ host, port }, place.receiver("udp"), {
        onSendError: onError,
        onCutOff: () => counters.cutOff.increment(),
        onUnanswerable: () => counters.unanswerable.increment(),
        reusePort,
      });
    }
    return listenTcp({ host, port }, place.receiver("tcp"), {
      ...streamOptions(place),
      reusePort,
      openSocket: await place.tcpSockets(),
    });
  },
};

/** What all transports with framed messages have in common. */
export function streamOptions({
  clock,
  budget,
  counters,
  settings,
}: ListenerPlace): Omit<FramedOptions, "receiver"> & { readonly onTurnedAway: () => void } {
  return {
    clock,
    budget,
    limits: () => streamLimits(settings()),
    onTurnedAway: () => counters.turnedAway.increment(),
    onUnread: () => counters.unread.increment(),
  };
}

function streamLimits(settings: BlockSettings): StreamLimits {
  return {
    readTimeout: settings.readTimeout,
    idleTimeout: settings.idleTimeout,
    maxQueries: settings.maxTcpQueries,
  };
}
