/** Upstreams over QUIC. Loaded only for a configuration that names one. */

import { clientContext, type TlsMaterial, trustedAuthorities } from "../encrypted/tls-client.ts";
import type { EncryptedPlace, EncryptedUpstreamOptions } from "../encrypted-upstream.ts";
import { ConnectBackOff } from "../exchange/connect-back-off.ts";
import { type Upstream, upstreamWithOneTransport } from "../upstream.ts";
import { CallThread } from "./call-thread.ts";
import { QuicExchange } from "./quic-exchange.ts";

/**
 * Makes upstreams that share a thread, certificates and keys.
 * @throws Error with a message for the operator if certificates or keys are invalid
 */
export function quicUpstreams(
  material: TlsMaterial,
): (
  place: Pick<EncryptedPlace, "address" | "serverName">,
  options: Omit<EncryptedUpstreamOptions, "method">,
) => Upstream {
  // Reports errors of certificate and key.
  clientContext(material);
  const { certificate, key } = material;
  const thread = new CallThread({ authorities: trustedAuthorities(material), certificate, key });
  return ({ address, serverName }, options) => {
    const exchange = new QuicExchange({
      ...options,
      remote: address,
      serverName,
      thread,
      metrics: options.metrics.exchange(address.text, "quic"),
      backOff: new ConnectBackOff(options.random),
    });
    return upstreamWithOneTransport(address, exchange, options);
  };
}
