import type { CounterSlot } from "../lib/metrics/metric-slots.ts";
import type { Clock } from "../lib/time/clock.ts";
import type { UpstreamAddress } from "./config/address.ts";
import type { Exchange, ExchangeOptions } from "./exchange/exchange.ts";
import type { RcodeDurations, UpstreamMetrics } from "./exchange/upstream-metrics.ts";
import { type HealthChange, HealthMonitor, type HealthProbe } from "./health-monitor.ts";
import { TcpExchange } from "./tcp/tcp-exchange.ts";
import type { OpenDatagramPort } from "./udp/datagram-port.ts";
import { UdpExchange } from "./udp/udp-exchange.ts";

export interface UpstreamParts {
  readonly address: UpstreamAddress;
  /** For queries that arrived as datagrams. */
  readonly datagram: Exchange;
  /** For queries that arrived over a stream. An upstream with one transport has the same exchange in both places. */
  readonly stream: Exchange;
  readonly health: HealthMonitor;
  /** Equals {@link health} for an upstream with one transport. */
  readonly streamHealth: HealthMonitor;
  readonly durations: RcodeDurations;
  /** Replies whose counts and octets do not match. */
  readonly irregular: CounterSlot;
}

/** Another server: its exchanges and its health. */
export class Upstream {
  readonly address: UpstreamAddress;
  readonly datagram: Exchange;
  readonly stream: Exchange;
  readonly health: HealthMonitor;
  readonly streamHealth: HealthMonitor;
  readonly durations: RcodeDurations;
  readonly irregular: CounterSlot;

  constructor(parts: UpstreamParts) {
    this.address = parts.address;
    this.datagram = parts.datagram;
    this.stream = parts.stream;
    this.health = parts.health;
    this.streamHealth = parts.streamHealth;
    this.durations = parts.durations;
    this.irregular = parts.irregular;
  }

  /** Whether there is only one transport, encrypted or a stream: replies are never truncated to fit a datagram. */
  get hasOneTransport(): boolean {
    return this.datagram === this.stream;
  }

  /** The health of the transport that a query takes: one may work while the other does not. */
  healthOver(stream: boolean): HealthMonitor {
    return stream ? this.streamHealth : this.health;
  }

  close(): void {
    this.health.stop();
    this.streamHealth.stop();
    this.datagram.close();
    this.stream.close();
  }
}

export interface PlainUpstreamOptions extends Omit<ExchangeOptions, "remote" | "metrics"> {
  readonly metrics: UpstreamMetrics;
  /** Idle TCP connections kept; 0 for no limit. */
  readonly maxIdle: number;
  readonly probe: HealthProbe;
  /** All queries and all probes go over TCP. */
  readonly onlyTcp: boolean;
  readonly openPort?: OpenDatagramPort;
}

/** Makes an upstream without encryption, over UDP and TCP. */
export function plainUpstream(address: UpstreamAddress, options: PlainUpstreamOptions): Upstream {
  const { metrics, probe, onlyTcp } = options;
  const to = address.text;
  const datagram = new UdpExchange({ ...options, remote: address, metrics: metrics.exchange(to, "udp") });
  const stream = new TcpExchange({ ...options, remote: address, metrics: metrics.exchange(to, "tcp") });
  const failures = metrics.healthcheckFailures(to);
  const { clock } = options;
  const changed = (change: HealthChange) => probe.onChange?.(to, change);
  const streamHealth = new HealthMonitor({ ...probe, exchange: stream, clock, failures, changed });
  const health = onlyTcp
    ? streamHealth
    : new HealthMonitor({ ...probe, exchange: datagram, clock, failures, changed });
  const durations = metrics.durations(to);
  const irregular = metrics.irregularLengths(to);
  return new Upstream({ address, datagram, stream, health, streamHealth, durations, irregular });
}

export interface OneTransportOptions {
  readonly clock: Clock;
  readonly metrics: UpstreamMetrics;
  readonly probe: HealthProbe;
}

/** Makes an upstream that uses its one transport for all queries and probes, whatever the client uses. */
export function upstreamWithOneTransport(
  address: UpstreamAddress,
  exchange: Exchange,
  { clock, metrics, probe }: OneTransportOptions,
): Upstream {
  const to = address.text;
  const health = new HealthMonitor({
    ...{ ...probe, exchange, clock },
    failures: metrics.healthcheckFailures(to),
    changed: (change) => probe.onChange?.(to, change),
  });
  return new Upstream({
    address,
    datagram: exchange,
    stream: exchange,
    health,
    streamHealth: health,
    durations: metrics.durations(to),
    irregular: metrics.irregularLengths(to),
  });
}
