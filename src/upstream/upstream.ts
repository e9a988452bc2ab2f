import type { UpstreamAddress } from "./address.ts";
import type { OpenDatagramPort } from "./datagram-port.ts";
import type { Exchange, ExchangeOptions } from "./exchange.ts";
import { HealthMonitor, type HealthProbe } from "./health-monitor.ts";
import { TcpExchange } from "./tcp-exchange.ts";
import { UdpExchange } from "./udp-exchange.ts";
import type { RcodeDurations, UpstreamMetrics } from "./upstream-metrics.ts";

export interface UpstreamParts {
  readonly address: UpstreamAddress;
  /** For queries that came as datagrams. */
  readonly datagram: Exchange;
  /** For queries that came over a stream. An upstream with one transport has the same exchange in both places. */
  readonly stream: Exchange;
  readonly health: HealthMonitor;
  readonly durations: RcodeDurations;
}

/** Another server: how to ask it, and how it fares. */
export class Upstream {
  readonly address: UpstreamAddress;
  readonly datagram: Exchange;
  readonly stream: Exchange;
  readonly health: HealthMonitor;
  readonly durations: RcodeDurations;

  constructor(parts: UpstreamParts) {
    this.address = parts.address;
    this.datagram = parts.datagram;
    this.stream = parts.stream;
    this.health = parts.health;
    this.durations = parts.durations;
  }

  close(): void {
    this.health.stop();
    this.datagram.close();
    this.stream.close();
  }
}

export interface PlainUpstreamOptions extends Omit<ExchangeOptions, "remote" | "metrics"> {
  readonly metrics: UpstreamMetrics;
  /** Idle TCP connections kept; 0 for no limit. */
  readonly maxIdle: number;
  readonly probe: HealthProbe;
  /** Probes go over TCP. */
  readonly probeOverTcp: boolean;
  readonly openPort?: OpenDatagramPort;
}

/** An upstream asked without encryption, over UDP and TCP. */
export function plainUpstream(address: UpstreamAddress, options: PlainUpstreamOptions): Upstream {
  const { metrics, probe, probeOverTcp } = options;
  const to = address.text;
  const datagram = new UdpExchange({ ...options, remote: address, metrics: metrics.exchange(to, "udp") });
  const stream = new TcpExchange({ ...options, remote: address, metrics: metrics.exchange(to, "tcp") });
  const health = new HealthMonitor({
    ...probe,
    exchange: probeOverTcp ? stream : datagram,
    clock: options.clock,
    failures: metrics.healthcheckFailures(to),
  });
  return new Upstream({ address, datagram, stream, health, durations: metrics.durations(to) });
}
