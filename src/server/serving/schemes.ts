/**
 * The schemes of server keys: `dns://` on UDP and TCP, and the others. The table decides which schemes a Corefile may
 * name; the code of a scheme is loaded when a Corefile names it.
 */
import type { Scheme } from "../../corefile/server-key.ts";
import { dnsScheme } from "./dns-scheme.ts";
import type { SchemeServer } from "./scheme-server.ts";

const SCHEMES: Readonly<Partial<Record<Scheme, () => SchemeServer | Promise<SchemeServer>>>> = {
  dns: () => dnsScheme,
  tls: async () => (await import("./tls-scheme.ts")).tlsScheme,
  https: async () => (await import("./https-scheme.ts")).httpsScheme,
  grpc: async () => (await import("./grpc-scheme.ts")).grpcScheme,
  quic: async () => (await import("./quic-scheme.ts")).quicScheme,
  https3: async () => (await import("./https3-scheme.ts")).https3Scheme,
};

/** For messages, in the order of the table. */
export const servedSchemes: readonly string[] = Object.keys(SCHEMES);

export function isServedScheme(scheme: Scheme): boolean {
  return SCHEMES[scheme] !== undefined;
}

/** @throws RangeError for a scheme that {@link isServedScheme} denies */
export async function schemeServer(scheme: Scheme): Promise<SchemeServer> {
  const load = SCHEMES[scheme];
  if (load === undefined) throw new RangeError(`nothing listens for ${scheme}://`);
  return load();
}
