import type { SecureContext } from "node:tls";
import type { UpstreamAddress } from "./config/address.ts";
import { TlsClient } from "./encrypted/tls-client.ts";
import { ConnectBackOff } from "./exchange/connect-back-off.ts";
import type { ExchangeOptions } from "./exchange/exchange.ts";
import type { UpstreamMetrics } from "./exchange/upstream-metrics.ts";
import type { HealthProbe } from "./health-monitor.ts";
import { GrpcDialect } from "./http2/grpc-dialect.ts";
import { Http2Exchange } from "./http2/http2-exchange.ts";
import { type Upstream, upstreamWithOneTransport } from "./upstream.ts";

export interface GrpcPlace {
  readonly address: UpstreamAddress;
  /** The host of requests. */
  readonly authority: string;
  /** The name in its certificate; its address if absent. */
  readonly serverName: string | undefined;
}

export interface GrpcUpstreamOptions extends Omit<ExchangeOptions, "remote" | "metrics"> {
  readonly metrics: UpstreamMetrics;
  readonly probe: HealthProbe;
  /** `undefined` for gRPC in the clear. */
  readonly context: SecureContext | undefined;
}

/** Makes an upstream that speaks DNS over gRPC. */
export function grpcUpstream(place: GrpcPlace, options: GrpcUpstreamOptions): Upstream {
  const { address, authority, serverName } = place;
  const { context, metrics, random } = options;
  const client =
    context === undefined ? undefined : new TlsClient({ context, serverName, protocols: ["h2"] });
  const exchange = new Http2Exchange({
    ...options,
    remote: address,
    metrics: metrics.exchange(address.text, "grpc"),
    dialect: new GrpcDialect(client, serverName ?? authority),
    backOff: new ConnectBackOff(random),
  });
  return upstreamWithOneTransport(address, exchange, options);
}
