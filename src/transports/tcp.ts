/** DNS over TCP (RFC 7766), and over any layer on top of TCP. */
import { SharedTurns } from "../lib/time/turn-share.ts";
import type { TransportName } from "../plugin/message/endpoint.ts";
import { listenForStreams, type StreamLayer } from "./byte-stream-server.ts";
import type { ConnectionBudget } from "./connection-budget.ts";
import { FramedConnection, type FramedOptions, type StreamLimits } from "./framed-connection.ts";
import type { OpenTcpSocket } from "./tcp-socket.ts";
import type { ListenTarget, MessageReceiver, Transport } from "./transport.ts";

export interface TcpOptions extends Omit<FramedOptions, "receiver" | "turns"> {
  /** Default: "tcp". */
  readonly name?: TransportName;
  readonly budget: ConnectionBudget;
  limits(): StreamLimits;
  /** Layers between TCP and the messages. Default: none. */
  readonly layers?: (() => readonly StreamLayer[]) | undefined;
  /** See `ByteStreamServerOptions`. */
  readonly connectionOctets?: (() => number) | undefined;
  /** See `UdpOptions`. */
  readonly reusePort?: boolean;
  readonly openSocket?: OpenTcpSocket;
  /** Called for each connection closed because there are too many. */
  readonly onTurnedAway?: () => void;
  /** Called for each connection closed because its client does not read its replies. */
  readonly onUnread?: (() => void) | undefined;
}

/** Milliseconds of an event-loop turn for processing messages of all connections. */
const SHARE = 0.5;

/**
 * Opens a TCP socket and hands every message to `receiver`.
 * @throws ListenError
 */
export async function listenTcp(
  target: ListenTarget,
  receiver: MessageReceiver,
  options: TcpOptions,
): Promise<Transport> {
  const framed: FramedOptions = { ...options, receiver, turns: new SharedTurns(options.clock, SHARE) };
  return listenForStreams(target, {
    name: options.name ?? "tcp",
    clock: options.clock,
    budget: options.budget,
    layers: options.layers,
    connectionOctets: options.connectionOctets,
    handshakeTimeout: () => options.limits().readTimeout,
    serve: (stream, account) => new FramedConnection(stream, framed, account),
    reusePort: options.reusePort,
    openSocket: options.openSocket,
    onTurnedAway: options.onTurnedAway,
    onUnread: options.onUnread,
  });
}
