/** Servers as configurations of old programs name them, as `forward` takes them. */
import { lookup } from "node:dns/promises";
import { parseIpAddress } from "../lib/ip-address.ts";

/** The addresses of a host, best first. Rejects where there are none. */
export type HostResolver = (host: string) => Promise<readonly string[]>;

export const systemResolver: HostResolver = async (host) =>
  (await lookup(host, { all: true })).map(({ address }) => address);

/** `ip`, `ip:port` or `[ip6]:port` with the address apart; `undefined` for anything else. */
export function splitServer(text: string): { readonly address: string; readonly port: string } | undefined {
  if (parseIpAddress(text) !== undefined) return { address: text, port: "" };
  const [, bracketed, plain, port = ""] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const address = bracketed ?? plain ?? "";
  return parseIpAddress(address) === undefined ? undefined : { address, port };
}

/** As `forward` takes it: `192.0.2.1`, `192.0.2.1:5353`, `2001:db8::1`, `[2001:db8::1]:5353`. */
export function forwardAddress({
  address,
  port,
}: {
  readonly address: string;
  readonly port: string;
}): string {
  // dnsmasq and kube-dns take 0 for no port.
  if (port === "" || Number(port) === 0) return address;
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

/**
 * All servers as addresses: names of hosts are looked up.
 * @param failed told of a name that has no address; it is left out
 */
export async function resolveServers(
  servers: readonly string[],
  resolve: HostResolver,
  failed: (host: string, reason: string) => void,
): Promise<string[]> {
  const addresses: string[] = [];
  for (const text of servers) {
    const split = splitServer(text);
    if (split !== undefined) {
      addresses.push(forwardAddress(split));
      continue;
    }
    try {
      const [address] = await resolve(text);
      if (address !== undefined) addresses.push(address);
    } catch (error) {
      failed(text, error instanceof Error ? error.message : String(error));
    }
  }
  return addresses;
}
