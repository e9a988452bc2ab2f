/** `dns://`: plain DNS on UDP and TCP (RFC 1035 section 4.2). */
import { RareErrors } from "../../lib/logging/rare-errors.ts";
import type { BlockSettings } from "../../plugin/contract/site.ts";
import type { StreamLayer } from "../../transports/byte-stream-server.ts";
import type { StreamLimits } from "../../transports/framed-connection.ts";
import { greetedReceiver, greetingLayer } from "../../transports/greeting.ts";
import { listenTcp, type TcpOptions } from "../../transports/tcp.ts";
import type { ListenerPlace, SchemeServer } from "./scheme-server.ts";

export const dnsScheme: SchemeServer = {
  transports: ["tcp", "udp"],
  async open(name, { port, reusePort }, place) {
    const { host, counters, onError } = place;
    if (name === "udp") {
      const listen = await place.listenUdp();
      const receiver = greetedReceiver(
        place.receiver("udp"),
        () => place.settings().greeting,
        refused(place),
      );
      const errors = new RareErrors(place.clock, onError);
      return listen({ host, port }, receiver, {
        onSendError: (error) => errors.note(error),
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

/** The options of all transports with framed messages. */
export function streamOptions(place: ListenerPlace): StreamOptions {
  const { clock, budget, counters, settings } = place;
  return {
    clock,
    budget,
    limits: () => streamLimits(settings()),
    layers: () => greetingLayers(place),
    onTurnedAway: () => {
      counters.turnedAway.increment();
      place.onCrowded();
    },
    onUnread: () => counters.unread.increment(),
  };
}

type StreamOptions = Pick<TcpOptions, "clock" | "budget" | "limits" | "layers" | "onTurnedAway" | "onUnread">;

/** Layers below any protocol: a PROXY header, if the configuration in force expects one. */
export function greetingLayers(place: ListenerPlace): readonly StreamLayer[] {
  const { greeting } = place.settings();
  return greeting === undefined ? NO_LAYERS : [greetingLayer(greeting, refused(place))];
}

const NO_LAYERS: readonly StreamLayer[] = [];

function refused({ counters }: ListenerPlace): () => void {
  return () => counters.ungreeted.increment();
}

function streamLimits(settings: BlockSettings): StreamLimits {
  return {
    readTimeout: settings.readTimeout,
    idleTimeout: settings.idleTimeout,
    maxQueries: settings.maxTcpQueries,
  };
}
