/** Proxies that the environment names, as Go's HTTP client reads it. */
import { parseIpAddress } from "../../../lib/net/ip-address.ts";
import { PrefixSet, parseIpPrefix } from "../../../lib/net/prefix-set.ts";

/** The variables of a process. */
export type ProcessEnvironment = Readonly<Record<string, string | undefined>>;

/** The proxy for a URL by `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` in either case; undefined for a direct connection. */
export function proxyFor(server: string, environment: ProcessEnvironment): string | undefined {
  const url = new URL(server);
  const scheme = url.protocol.slice(0, -1);
  const proxy = environment[`${scheme.toUpperCase()}_PROXY`] || environment[`${scheme}_proxy`] || "";
  if (proxy === "" || isExempt(url, environment.NO_PROXY || environment.no_proxy || "")) return undefined;
  return /^[a-z0-9]+:\/\//i.test(proxy) ? proxy : `http://${proxy}`;
}

/** `NO_PROXY`: names with all below them, addresses, networks (CIDR), each with a port if need be; `*` for all. */
function isExempt(url: URL, list: string): boolean {
  const host = url.hostname.replace(/^\[|\]$/g, "").toLowerCase();
  if (host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host)) return true;
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  return list.split(",").some((entry) => exempts(entry.trim().toLowerCase(), host, port));
}

function exempts(entry: string, host: string, port: string): boolean {
  if (entry === "*") return true;
  if (entry.includes("/")) return isInNetwork(host, entry);
  // What has several colons and no brackets is an IPv6 address without a port.
  const match = /^\[(.+)\](?::(\d+))?$/.exec(entry) ?? /^([^:]+)(?::(\d+))?$/.exec(entry) ?? [entry, entry];
  const [, written = "", wantedPort] = match;
  const name = written.replace(/^\*?\./, "");
  if (name === "" || (wantedPort !== undefined && wantedPort !== port)) return false;
  return host === name || (parseIpAddress(name) === undefined && host.endsWith(`.${name}`));
}

function isInNetwork(host: string, network: string): boolean {
  const address = parseIpAddress(host);
  if (address === undefined || parseIpPrefix(network) === undefined) return false;
  const networks = new PrefixSet<true>();
  networks.add(network, true);
  return networks.lookup(address) === true;
}
