/** Upstreams over TLS and HTTPS. Loaded only for a configuration that names one. */
import type { SecureContext } from "node:tls";
import type { UpstreamAddress } from "./config/address.ts";
import { clientContext, TlsClient, TlsDialler, type TlsMaterial } from "./encrypted/tls-client.ts";
import { ConnectBackOff } from "./exchange/connect-back-off.ts";
import type { Exchange, ExchangeOptions } from "./exchange/exchange.ts";
import type { UpstreamMetrics } from "./exchange/upstream-metrics.ts";
import type { HealthProbe } from "./health-monitor.ts";
import { DohDialect, type DohMethod } from "./http2/doh-dialect.ts";
import { Http2Exchange } from "./http2/http2-exchange.ts";
import { TcpExchange } from "./tcp/tcp-exchange.ts";
import { type Upstream, upstreamWithOneTransport } from "./upstream.ts";

/** Address and identity of an encrypted upstream. */
export interface EncryptedPlace {
  readonly address: UpstreamAddress;
  readonly scheme: "tls" | "https";
  /** The name in its certificate; its address if absent. */
  readonly serverName: string | undefined;
  /** The host of HTTP requests, with the port if it is not 443. */
  readonly authority: string;
  readonly path: string;
}

export interface EncryptedUpstreamOptions extends Omit<ExchangeOptions, "remote" | "metrics"> {
  readonly metrics: UpstreamMetrics;
  /** Idle connections kept; 0 for no limit. */
  readonly maxIdle: number;
  readonly method: DohMethod;
  readonly probe: HealthProbe;
}

type InContext = EncryptedUpstreamOptions & { readonly context: SecureContext };

/**
 * Makes upstreams that share certificates and keys.
 * @throws Error with a message for the operator if certificates or keys are invalid
 */
export function encryptedUpstreams(
  material: TlsMaterial,
): (place: EncryptedPlace, options: EncryptedUpstreamOptions) => Upstream {
  const context = clientContext(material);
  return (place, options) => encryptedUpstream(place, { ...options, context });
}

function encryptedUpstream(place: EncryptedPlace, options: InContext): Upstream {
  const exchange = place.scheme === "tls" ? tlsExchange(place, options) : httpsExchange(place, options);
  return upstreamWithOneTransport(place.address, exchange, options);
}

function tlsExchange({ address, serverName }: EncryptedPlace, options: InContext): Exchange {
  const client = new TlsClient({ context: options.context, serverName });
  const dialler = new TlsDialler(client);
  return new TcpExchange({
    ...options,
    remote: address,
    metrics: options.metrics.exchange(address.text, dialler.protocol),
    dialler,
    backOff: new ConnectBackOff(options.random),
  });
}

function httpsExchange(place: EncryptedPlace, options: InContext): Exchange {
  const { address, serverName, authority, path } = place;
  const client = new TlsClient({ context: options.context, serverName, protocols: ["h2"] });
  return new Http2Exchange({
    ...options,
    remote: address,
    metrics: options.metrics.exchange(address.text, "https"),
    dialect: new DohDialect({ client, authority, path, method: options.method }),
    backOff: new ConnectBackOff(options.random),
  });
}
