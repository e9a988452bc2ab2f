/** kube-dns's ConfigMap -> arguments of dnsmasq (docs/spec/kube-dns.md#dnsmasq-nanny). */
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import type { KubeDnsConfig } from "../kube-dns/config-map.ts";
import { type HostResolver, splitServer } from "../server-addresses.ts";

/** `1.2.3.4:53` -> `1.2.3.4#53`, `[v6]:53` -> `[v6]#53`; other text stays as it is. */
export function dnsmasqServer(server: string): string {
  if (parseIpAddress(server) !== undefined) return server;
  return server.replace(/:(\d+)$/, "#$1");
}

/**
 * Returns the words to append to the command line's arguments.
 * @param resolve for servers given by name
 */
export async function nannyArguments(config: KubeDnsConfig, resolve: HostResolver): Promise<string[]> {
  const words: string[] = [];
  for (const [domain, servers] of config.stubDomains) {
    for (const server of servers) {
      const isAddress = splitServer(server) !== undefined;
      const [address] = isAddress ? [server] : await resolve(server).catch(() => [server]);
      words.push("--server", `/${domain}/${dnsmasqServer(address ?? server)}`);
    }
  }
  for (const server of config.upstreamNameservers) words.push("--server", dnsmasqServer(server));
  if (config.upstreamNameservers.length > 0) words.push("--no-resolv");
  return words;
}
