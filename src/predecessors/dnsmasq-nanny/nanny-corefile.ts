/** What dnsmasq would do by its arguments, as a Corefile. */
import { parseIpAddress } from "../../lib/ip-address.ts";
import type { DnsmasqSettings } from "./dnsmasq-arguments.ts";
import { FILTER } from "./query-filter.ts";
import { FORWARDED, STATISTICS } from "./statistics.ts";

export interface NannyServing {
  readonly settings: DnsmasqSettings;
  /** Servers for everything that no other line names. */
  readonly servers: readonly string[];
  /** Lines of further hosts files. */
  readonly hostLines: readonly string[];
}

/** What `cache` holds at the least. */
const MIN_CAPACITY = 1024;

/** What `cache` keeps an answer for unless told otherwise. */
const LONGEST_TTL = 3600;

export function nannyCorefile({ settings, servers, hostLines }: NannyServing): string {
  const { port, listen, logsQueries, addresses, domains } = settings;
  const lines = [
    `.:${port} {`,
    ...(listen.length === 0 ? [] : [`    bind ${listen.join(" ")}`]),
    `    ${STATISTICS}`,
    `    ${FORWARDED}`,
    ...filterLines(settings),
    "    errors",
    ...(logsQueries ? ["    log"] : []),
    "    chaos",
    ...(settings.maxTtl > 0 ? [`    rewrite ttl regex .* 0-${settings.maxTtl}`] : []),
    ...cacheLines(settings),
    // dnsmasq says so of all that it answers.
    ...block("header", ["response set ra"]),
    ...[...addresses].flatMap(([domain, fixed]) => templateLines(domain, fixed, settings.localTtl)),
    ...hostsLines(settings, hostLines),
  ];
  // The longest suffix wins, and a domain of its own is asked for nowhere else.
  const routes = [...domains].toSorted(([left], [right]) => labels(right) - labels(left));
  const local = routes.filter(([, list]) => list.length === 0).map(([domain]) => domain);
  for (const domain of local) lines.push(...block(`template ANY ANY ${domain}`, ["rcode NXDOMAIN"]));
  for (const [domain, list] of routes)
    if (list.length > 0) lines.push(...forwardLines(domain, list, settings.strictOrder));
  if (servers.length > 0) lines.push(...forwardLines(".", servers, settings.strictOrder));
  return `${[...lines, "}"].join("\n")}\n`;
}

function labels(domain: string): number {
  return domain.split(".").length;
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

function cacheLines({ cacheSize, keepsDenials, maxCacheTtl, minCacheTtl }: DnsmasqSettings): string[] {
  if (cacheSize === 0) return [];
  const capacity = Math.max(MIN_CAPACITY, cacheSize);
  const longest = maxCacheTtl === undefined || maxCacheTtl === 0 ? undefined : maxCacheTtl;
  const ttl = longest === undefined ? "" : ` ${longest}`;
  const success =
    minCacheTtl === 0 ? ttl : ` ${Math.max(longest ?? LONGEST_TTL, minCacheTtl)} ${minCacheTtl}`;
  return block("cache", [
    `success ${capacity}${success}`,
    ...(keepsDenials ? [`denial ${capacity}${ttl}`] : ["disable denial"]),
    "servfail 0",
  ]);
}

/** A fixed answer for a domain and all below it; none for a name that is not there. */
function templateLines(domain: string, addresses: readonly string[], ttl: number): string[] {
  const zone = domain === "#" || domain === "" ? "." : domain;
  if (addresses.length === 0) return block(`template ANY ANY ${zone}`, ["rcode NXDOMAIN"]);
  const families: [string, string[]][] = [
    ["A", addresses.filter((each) => parseIpAddress(each)?.length === 4)],
    ["AAAA", addresses.filter((each) => parseIpAddress(each)?.length === 16)],
  ];
  return [
    ...families.flatMap(([type, fixed]) =>
      fixed.length === 0
        ? []
        : block(
            `template IN ${type} ${zone}`,
            fixed.map((each) => `answer "{{ .Name }} ${ttl} IN ${type} ${each}"`),
          ),
    ),
    ...block(`template ANY ANY ${zone}`, ["rcode NOERROR"]),
  ];
}

function hostsLines(settings: DnsmasqSettings, more: readonly string[]): string[] {
  const { readsHosts, hostRecords, localTtl } = settings;
  const records = hostRecords.flatMap(([name = "", ...addresses]) =>
    addresses.map((address) => `${address} ${name}`),
  );
  const inline = [...records, ...more];
  if (!readsHosts && inline.length === 0) return [];
  const file = readsHosts ? "/etc/hosts" : "/dev/null";
  return block(`hosts ${file}`, [...inline, `ttl ${Math.max(1, localTtl)}`, "fallthrough"]);
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
