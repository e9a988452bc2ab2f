/** `tls://`: DNS over TLS (RFC 7858). Without a certificate (`tls`) it is plain TCP, as CoreDNS has it. */

import type { StreamLayer } from "../../transports/byte-stream-server.ts";
import { TCP_OCTETS, TLS_OCTETS } from "../../transports/connection-budget.ts";
import { listenTcp } from "../../transports/tcp.ts";
import { TlsLayer } from "../../transports/tls-layer.ts";
import { greetingLayers, streamOptions } from "./dns-scheme.ts";
import type { ListenerPlace, SchemeServer } from "./scheme-server.ts";

export const tlsScheme: SchemeServer = {
  transports: ["tls"],
  async open(name, { port, reusePort }, place) {
    const tls = tlsLayer(place, ["dot"]);
    return listenTcp({ host: place.host, port }, place.receiver(name), {
      ...streamOptions(place),
      name,
      layers: () => layersBelow(place, tls),
      connectionOctets: connectionOctets(place),
      reusePort,
      openSocket: await place.tcpSockets(),
    });
  },
};

/** The layers below the protocol of an encrypted listener: the PROXY header, and TLS if there is a certificate. */
export function layersBelow(place: ListenerPlace, tls: StreamLayer): readonly StreamLayer[] {
  const greeting = greetingLayers(place);
  return place.settings().identity === undefined ? greeting : [...greeting, tls];
}

/** Bytes of a connection of an encrypted listener. */
export function connectionOctets({ settings }: ListenerPlace): () => number {
  return () => (settings().identity === undefined ? TCP_OCTETS : TLS_OCTETS);
}

/** @param protocols that clients may select */
export function tlsLayer(
  { label, settings, metrics }: ListenerPlace,
  protocols: readonly string[],
): TlsLayer {
  const failed = metrics
    .counter({
      name: "portolan_tls_failed_handshakes_total",
      help: "Connections that ended during the TLS handshake: refused, abandoned by the client, or timed out.",
      labels: ["server"],
    })
    .slot(label);
  return new TlsLayer({
    protocols,
    identity: () => settings().identity?.current,
    onHandshakeFailed: () => failed.increment(),
  });
}
