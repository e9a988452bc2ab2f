import { parseScopedIpAddress } from "../../lib/net/ip-address.ts";

/** Where a connection goes. */
export interface PeerAddress {
  /** IP address as written, zone index included (`fe80::1%eth0`), or the name of a host. */
  readonly host: string;
  readonly port: number;
  /** `10.0.0.1:53`, `[::1]:53`: as in logs and in the `to` label of metrics. */
  readonly text: string;
  /** Path of a Unix socket, which has no address. */
  readonly path?: string;
}

/** Address of an upstream. Its {@link PeerAddress.host | host} is an IP address. */
export interface UpstreamAddress extends PeerAddress {
  readonly family: 4 | 6;
  /** Equal for two spellings of one address and port. */
  readonly key: string;
}

/** `undefined` if `host` is not an IP address. */
export function upstreamAddress(host: string, port: number): UpstreamAddress | undefined {
  const scoped = parseScopedIpAddress(host);
  if (scoped === undefined) return undefined;
  const family = scoped.octets.length === 4 ? 4 : 6;
  return {
    host,
    port,
    family,
    text: family === 4 ? `${host}:${port}` : `[${host}]:${port}`,
    key: `${scoped.octets.join(".")}%${scoped.zone ?? ""}:${port}`,
  };
}

/** `9.9.9.9%dns.quad9.net:853`: the name in the server's certificate follows its address. */
export function splitServerName(text: string): {
  readonly text: string;
  readonly serverName: string | undefined;
} {
  return { text: text.replace(/%[^:\]/]+/, ""), serverName: /%([^:\]/]+)/.exec(text)?.[1] };
}

/** The socket at an absolute path. */
export function socketAddress(path: string): UpstreamAddress {
  const text = `unix://${path}`;
  return { host: path, port: 0, family: 4, text, key: text, path };
}
