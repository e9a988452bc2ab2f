/** The interface of what serves one scheme of server keys. */

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
  /** The sockets of a listen point. They share one port: if the system chooses it, that of the first. */
  readonly transports: readonly TransportName[];
  /** @throws ListenError */
  open(name: TransportName, socket: SocketWish, place: ListenerPlace): Promise<Transport>;
}

export interface SocketWish {
  /** 0 lets the system choose. */
  readonly port: number;
  /** Whether other sockets listen on the same address already, and share it. */
  readonly reusePort: boolean;
}

/** The listener, for a scheme that opens its sockets. It outlives configurations, and must refer to none. */
export interface ListenerPlace {
  readonly label: string;
  /** Empty for all addresses. */
  readonly host: string;
  /** Of the configuration in force: call it for each connection. */
  readonly settings: () => BlockSettings;
  receiver(transport: TransportName): MessageReceiver;
  readonly clock: Clock;
  /** Shared by all stream connections of the data plane. */
  readonly budget: ConnectionBudget;
  readonly listenUdp: () => Promise<UdpListen>;
  readonly tcpSockets: () => Promise<OpenTcpSocket>;
  readonly counters: TransportCounters;
  /**
   * A connection had to be closed because there are too many.
   * @param own the listener's own bound, if that was reached
   */
  readonly onCrowded: (own?: number) => void;
  readonly metrics: MetricsRegistry;
  readonly onError: (error: unknown) => void;
}

/** The counters of one listener's sockets. */
export interface TransportCounters {
  /** Connections closed because too many were open. */
  readonly turnedAway: CounterSlot;
  /** Connections closed because their clients do not read. */
  readonly unread: CounterSlot;
  /** Connections and datagrams with a missing or malformed PROXY header. */
  readonly ungreeted: CounterSlot;
  /** Datagrams from port 0, which cannot be answered. */
  readonly unanswerable: CounterSlot;
  /** Datagrams that were too long for the buffer. */
  readonly cutOff: CounterSlot;
}
