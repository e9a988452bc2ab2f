/** The features of CoreDNS by version, for `downgrade`. */
import { OLDEST } from "./versions.ts";

/** Plugins whose first version is known. */
const SINCE: ReadonlyMap<string, string> = new Map([
  ["loop", "1.2.1"],
  ["grpc", "1.5.0"],
  ["ready", "1.5.0"],
  ["transfer", "1.8.0"],
  ["dynupdate", "1.15.0"],
  ["siit", "1.15.0"],
]);

/** The directives of CoreDNS 1.15.0. Those that are not listed above have an unknown first version. */
const TODAYS: ReadonlySet<string> = new Set(
  (
    "acl any auto autopath azure bind bufsize cache cancel chaos clouddns debug dns64 dnssec dnstap erratic errors etcd file forward geoip grpc " +
    "grpc_server header health hosts https https3 import k8s_external kubernetes loadbalance local log loop metadata minimal multisocket nomad " +
    "nsid on pprof prometheus proxyproto quic ready reload rewrite root route53 secondary shed sign template timeouts tls trace transfer tsig " +
    "view whoami"
  ).split(" "),
);

/** Options that only this server has. */
const OWN_OPTIONS: ReadonlyMap<string, readonly string[]> = new Map([
  ["trace", ["errors", "slower", "client", "parent", "tls", "header", "queue"]],
  ["log", ["slower"]],
  ["dns64", ["translate_ptr"]],
  ["siit", ["translate_ptr"]],
  ["cache", ["memory"]],
  ["dnssec", ["compact"]],
  ["tls", ["discovery"]],
  ["transfer", ["key"]],
  ["azure", ["endpoint"]],
  ["clouddns", ["endpoint"]],
  [
    "kubernetes",
    ["manifests", "replicas_as_endpoints", "kube_dns", "wildcards", "snapshot", "max_staleness"],
  ],
  ["file", ["allow", "update", "journal"]],
  ["secondary", ["axfr_only", "tls", "tls_servername", "key", "directory", "max_size"]],
  ["etcd", ["stubzones", "skydns_config", "read_through"]],
  ["forward", ["bootstrap"]],
  ["sign", ["nsec3"]],
  ["nomad", ["token_file", "fallthrough"]],
]);

/** Options whose first version of CoreDNS is known: `plugin option`. */
const OPTIONS_SINCE: ReadonlyMap<string, string> = new Map([
  ["azure refresh", "1.15.0"],
  ["clouddns refresh", "1.15.0"],
  ["etcd no_apex_fallback", "1.15.0"],
  ["https max_streams", "1.15.0"],
  ["proxyproto tlv_metadata", "1.15.0"],
  ["quic max_connections", "1.15.0"],
]);

/** The version of CoreDNS that introduced an option, if it is known. */
export function optionSince(plugin: string, option: string): string | undefined {
  return OPTIONS_SINCE.get(`${plugin} ${option}`);
}

/** The version of CoreDNS that introduced a feature named by a word of the directive or of its block, and that word. */
export function wordSince(
  plugin: string,
  words: readonly string[],
): { readonly word: string; readonly version: string } | undefined {
  if (plugin === "rewrite") {
    const rule = ["continue", "stop"].includes(words[0] ?? "") ? words.slice(1) : words;
    const isLabelled = rule[0] === "name" && rule[1]?.toLowerCase() === "regex" && rule[4] === "metadata";
    return isLabelled ? { word: "metadata", version: "1.15.0" } : undefined;
  }
  const isOverQuic = plugin === "forward" && words.some((word) => word.startsWith("quic://"));
  return isOverQuic ? { word: "quic://", version: "1.15.0" } : undefined;
}

/** Directives that CoreDNS accepts only once in a block, and this server several times. */
export const ONCE_IN_COREDNS: ReadonlySet<string> = new Set(["grpc"]);

/** The version of CoreDNS that introduced a plugin; `undefined` if CoreDNS never had it. */
export function pluginSince(name: string): string | undefined {
  return SINCE.get(name) ?? (TODAYS.has(name) ? OLDEST : undefined);
}

export function isOwnOption(plugin: string, option: string): boolean {
  return OWN_OPTIONS.get(plugin)?.includes(option) ?? false;
}
