/** Zone transfers over TLS (RFC 9103). This room is loaded for a configuration that asks for them, and not before. */
import type { StreamDialler } from "../tcp/tcp-connection.ts";
import { clientContext, TlsClient, TlsDialler, type TlsMaterial } from "./tls-client.ts";

/**
 * Makes diallers that share what is trusted and shown: TLS 1.3 and the protocol `dot`, as RFC 9103 sections 7.1 and 7.2 ask for.
 * @throws Error with a message for the operator when certificates or keys are no good
 */
export function transferDiallers(material: TlsMaterial): (serverName: string | undefined) => StreamDialler {
  const context = clientContext(material, "TLSv1.3");
  return (serverName) =>
    new TlsDialler(new TlsClient({ context, serverName, protocols: ["dot"], mustAgree: true }));
}
