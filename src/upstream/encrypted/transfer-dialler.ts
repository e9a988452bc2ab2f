/** Zone transfers over TLS (RFC 9103). Loaded only for a configuration that asks for them. */
import type { StreamDialler } from "../tcp/tcp-connection.ts";
import { clientContext, TlsClient, TlsDialler, type TlsMaterial } from "./tls-client.ts";

/**
 * Makes diallers that share certificates and keys: TLS 1.3 and the protocol `dot`, as RFC 9103 sections 7.1 and 7.2 require.
 * @throws Error with a message for the operator if certificates or keys are invalid
 */
export function transferDiallers(material: TlsMaterial): (serverName: string | undefined) => StreamDialler {
  const context = clientContext(material, "TLSv1.3");
  return (serverName) =>
    new TlsDialler(new TlsClient({ context, serverName, protocols: ["dot"], mustAgree: true }));
}
