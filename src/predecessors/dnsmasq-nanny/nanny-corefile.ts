/** Turns dnsmasq's arguments into an equivalent Corefile. */
import { DATED_DENIALS, PLAIN_DENIALS } from "./bare-denials.ts";
import type { DnsmasqSettings } from "./dnsmasq-arguments.ts";
import { LOCAL_NAMES, zoneOf } from "./local-names.ts";
import { FILTER } from "./query-filter.ts";
import { FORWARDED, STATISTICS } from "./statistics.ts";

export interface NannyServing {
  readonly settings: DnsmasqSettings;
  /** Servers for all names without a line of their own. */
  readonly servers: readonly string[];
}

/** Minimum capacity of `cache`. */
const MIN_CAPACITY = 1024;

/** Seconds; dnsmasq has no limit. */
const LONGEST_TTL = 31 * 86_400;

export function nannyCorefile({ settings, servers }: NannyServing): string {
  const { port, listen, logsQueries, domains, strictOrder, maxTtl } = settings;
  const lines = [
    `.:${port} {`,
    ...(listen.length === 0 ? [] : [`    bind ${listen.join(" ")}`]),
    ...[STATISTICS, FORWARDED, LOCAL_NAMES, PLAIN_DENIALS, DATED_DENIALS].map((name) => `    ${name}`),
    ...filterLines(settings),
    "    errors",
    ...(logsQueries ? ["    log"] : []),
    ...(maxTtl > 0 ? [`    rewrite ttl regex .* 0-${maxTtl}`] : []),
    ...cacheLines(settings),
    // dnsmasq sets RA in all of its answers.
    ...block("header", ["response set ra"]),
  ];
  // The longest suffix wins, and its domain is queried nowhere else.
  const routes = [...domains].toSorted(
    ([left], [right]) => zoneOf(right).labelCount - zoneOf(left).labelCount,
  );
  for (const [domain, own] of routes) {
    const list = own === "others" ? servers : own;
    if (list.length > 0) lines.push(...forwardLines(String(zoneOf(domain)), list, strictOrder));
  }
  if (servers.length > 0) lines.push(...forwardLines(".", servers, strictOrder));
  return `${[...lines, "}"].join("\n")}\n`;
}

function filterLines({ filter, domains }: DnsmasqSettings): string[] {
  const { domainNeeded, bogusPriv, filterWin2k, stopRebind, rebindOk, rebindLocalhostOk } = filter;
  if (!domainNeeded && !bogusPriv && !filterWin2k && !stopRebind) return [];
  return block(FILTER, [
    ...(domainNeeded ? ["domain_needed"] : []),
    ...(bogusPriv ? ["bogus_priv"] : []),
    ...(filterWin2k ? ["filterwin2k"] : []),
    ...(stopRebind ? ["stop_dns_rebind"] : []),
    ...(rebindLocalhostOk ? ["rebind_localhost_ok"] : []),
    ...(rebindOk.length > 0 ? [`rebind_domain_ok ${rebindOk.join(" ")}`] : []),
    ...(domains.size > 0 ? [`routed ${[...domains.keys()].join(" ")}`] : []),
  ]);
}

function cacheLines({ cacheSize, keepsDenials, maxCacheTtl = 0, minCacheTtl }: DnsmasqSettings): string[] {
  if (cacheSize === 0) return [];
  const capacity = Math.max(MIN_CAPACITY, cacheSize);
  const longest = maxCacheTtl === 0 ? LONGEST_TTL : maxCacheTtl;
  return block("cache", [
    `success ${capacity} ${Math.max(longest, minCacheTtl)} ${minCacheTtl}`,
    ...(keepsDenials ? [`denial ${capacity} ${longest} 0`] : ["disable denial"]),
    "servfail 0",
  ]);
}

function forwardLines(zone: string, servers: readonly string[], strictOrder: boolean): string[] {
  return block(`forward ${zone} ${servers.join(" ")}`, [
    ...(strictOrder ? ["policy sequential"] : []),
    "max_fails 2",
  ]);
}

function block(head: string, lines: readonly string[]): string[] {
  return [`    ${head} {`, ...lines.map((line) => `        ${line}`), "    }"];
}
