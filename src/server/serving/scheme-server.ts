/** What serves one scheme of server keys, and what it is given. */

import type { CounterSlot } from "../../lib/metrics/metric-slots.ts";
import type { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { BlockSettings } from "../../plugin/contract/site.ts";
import type { TransportName } from "../../plugin/message/endpoint.ts";
import type { ConnectionBudget } from "../../transports/connection-budget.ts";
import type { OpenTcpSocket } from "../../transports/tcp-socket.ts";
import type { MessageReceiver, Transport } from "../../transports/transport.ts";
import type { UdpListen } from "../../transports/udp.ts";

/** Serves one scheme. */
export interface SchemeServer {
  /** The sockets of a listen point. They have one port: where it is left to the system, that of the first. */
  readonly transports: readonly TransportName[];
  /** @throws ListenError */
  open(name: TransportName, socket: SocketWish, place: ListenerPlace): Promise<Transport>;
}

export interface SocketWish {
  /** 0 leaves it to the system. */
  readonly port: number;
  /** Whether others listen on the same address already, and allow it. */
  readonly reusePort: boolean;
}

/** What a scheme needs to know of the listener that it opens sockets for. It outlives configurations, and so must hold on to none. */
export interface ListenerPlace {
  readonly label: string;
  /** Empty for all addresses. */
  readonly host: string;
  /** Of the configuration in force: ask anew for each connection. */
  readonly settings: () => BlockSettings;
  receiver(transport: TransportName): MessageReceiver;
  readonly clock: Clock;
  /** What all stream connections of the data plane share. */
  readonly budget: ConnectionBudget;
  readonly listenUdp: () => Promise<UdpListen>;
  readonly tcpSockets: () => Promise<OpenTcpSocket>;
  readonly counters: TransportCounters;
  /**
   * A connection had to be closed because there are too many.
   * @param own the bound of this listener, where it is that one
   */
  readonly onCrowded: (own?: number) => void;
  readonly metrics: MetricsRegistry;
  readonly onError: (error: unknown) => void;
}

/** What sockets count, for one listener. */
export interface TransportCounters {
  /** Connections closed because there are too many. */
  readonly turnedAway: CounterSlot;
  /** Connections closed because their clients do not read. */
  readonly unread: CounterSlot;
  /** Connections and datagrams without the greeting that is expected of them, or with a malformed one. */
  readonly ungreeted: CounterSlot;
  /** Datagrams that no reply can be sent to: from port 0. */
  readonly unanswerable: CounterSlot;
  /** Datagrams that were longer than the room for them. */
  readonly cutOff: CounterSlot;
}
