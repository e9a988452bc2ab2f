/** The command line of dnsmasq, as far as it is about names (kube-dns facts 6.1). */
import { parseIpAddress } from "../../lib/ip-address.ts";
import { forwardAddress } from "../server-addresses.ts";

export interface DnsmasqSettings {
  readonly port: number;
  readonly listen: readonly string[];
  /** 0 for no cache. */
  readonly cacheSize: number;
  readonly keepsDenials: boolean;
  readonly logsQueries: boolean;
  readonly readsHosts: boolean;
  readonly hostsFiles: readonly string[];
  /** Name, then addresses. */
  readonly hostRecords: readonly (readonly string[])[];
  /** Seconds; of names that are known here. */
  readonly localTtl: number;
  /** Servers for everything else, as `forward` takes them. */
  readonly servers: readonly string[];
  /** Domain -> servers; none where its names are known here or nowhere. */
  readonly domains: ReadonlyMap<string, readonly string[]>;
  /** Domain -> addresses; none for NXDOMAIN. */
  readonly addresses: ReadonlyMap<string, readonly string[]>;
  readonly readsResolvConf: boolean;
  readonly resolvConf: string;
  readonly strictOrder: boolean;
  readonly maxCacheTtl: number | undefined;
  /** Seconds, at the most 3600: answers are kept for so long, whatever they say. */
  readonly minCacheTtl: number;
  /** Seconds that clients are told at the most; 0 for no bound. */
  readonly maxTtl: number;
  /** What is kept from servers, and from clients. */
  readonly filter: QueryFilterSettings;
  /** Options that were passed over though they would have changed something. */
  readonly without: readonly string[];
}

export interface QueryFilterSettings {
  readonly domainNeeded: boolean;
  readonly bogusPriv: boolean;
  readonly filterWin2k: boolean;
  readonly stopRebind: boolean;
  readonly rebindOk: readonly string[];
  readonly rebindLocalhostOk: boolean;
}

/** Words that cannot be carried out; the message is one line, as dnsmasq's is. */
export class DnsmasqArgumentError extends Error {
  override readonly name = "DnsmasqArgumentError";
}

const SHORT: Readonly<Record<string, string>> = {
  S: "server",
  A: "address",
  c: "cache-size",
  N: "no-negcache",
  H: "addn-hosts",
  h: "no-hosts",
  q: "log-queries",
  R: "no-resolv",
  r: "resolv-file",
  p: "port",
  a: "listen-address",
  o: "strict-order",
  k: "keep-in-foreground",
  u: "user",
  g: "group",
  T: "local-ttl",
  D: "domain-needed",
  b: "bogus-priv",
  f: "filterwin2k",
  C: "conf-file",
  x: "pid-file",
  z: "bind-interfaces",
  n: "no-poll",
  d: "no-daemon",
  i: "interface",
};
/** Take a value; every other option is a switch, or takes one behind `=` alone. */
const WITH_VALUE = new Set([
  "server",
  "local",
  "address",
  "cache-size",
  "addn-hosts",
  "resolv-file",
  "port",
  "listen-address",
  "local-ttl",
  "host-record",
  "log-facility",
  "max-cache-ttl",
  "max-ttl",
  "min-cache-ttl",
  "neg-ttl",
  "dns-forward-max",
  "rebind-domain-ok",
  "interface",
  "conf-dir",
  "edns-packet-max",
]);
/** May take one: a word behind them that begins with a hyphen is none. */
const WITH_OPTIONAL_VALUE = new Set(["user", "group", "pid-file"]);
/** Of no consequence here. */
const HARMLESS = new Set([
  "keep-in-foreground",
  "no-daemon",
  "user",
  "group",
  "log-facility",
  "log-async",
  "pid-file",
  "bind-interfaces",
  "bind-dynamic",
  "no-poll",
  "dns-loop-detect",
  "dns-forward-max",
  "all-servers",
  "no-ident",
  "edns-packet-max",
]);
const WITHOUT_EFFECT = new Set(["neg-ttl"]);

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** @throws DnsmasqArgumentError */
export function readDnsmasqArguments(words: readonly string[]): DnsmasqSettings {
  const listen: string[] = [];
  const hostsFiles: string[] = [];
  const hostRecords: string[][] = [];
  const servers: string[] = [];
  const domains = new Map<string, string[]>();
  const addresses = new Map<string, string[]>();
  const without: string[] = [];
  const rebindOk: string[] = [];
  const filter: Mutable<QueryFilterSettings> = {
    domainNeeded: false,
    bogusPriv: false,
    filterWin2k: false,
    stopRebind: false,
    rebindOk,
    rebindLocalhostOk: false,
  };
  const settings: Mutable<DnsmasqSettings> = {
    port: 53,
    listen,
    cacheSize: 150,
    keepsDenials: true,
    logsQueries: false,
    readsHosts: true,
    hostsFiles,
    hostRecords,
    localTtl: 0,
    servers,
    domains,
    addresses,
    readsResolvConf: true,
    resolvConf: "/etc/resolv.conf",
    strictOrder: false,
    maxCacheTtl: undefined,
    minCacheTtl: 0,
    maxTtl: 0,
    filter,
    without,
  };
  const count = (name: string, value: string): number => {
    if (!/^\d{1,9}$/.test(value)) throw new DnsmasqArgumentError(`dnsmasq: bad option: --${name}=${value}`);
    return Number(value);
  };
  for (const [name, value] of options(words)) {
    switch (name) {
      case "port":
        settings.port = count(name, value);
        break;
      case "cache-size":
        settings.cacheSize = count(name, value);
        break;
      case "local-ttl":
        settings.localTtl = count(name, value);
        break;
      case "max-cache-ttl":
        settings.maxCacheTtl = count(name, value);
        break;
      case "min-cache-ttl":
        settings.minCacheTtl = Math.min(count(name, value), 3600);
        break;
      case "max-ttl":
        settings.maxTtl = count(name, value);
        break;
      case "domain-needed":
        filter.domainNeeded = true;
        break;
      case "bogus-priv":
        filter.bogusPriv = true;
        break;
      case "filterwin2k":
        filter.filterWin2k = true;
        break;
      case "stop-dns-rebind":
        filter.stopRebind = true;
        break;
      case "rebind-localhost-ok":
        filter.rebindLocalhostOk = true;
        break;
      case "rebind-domain-ok":
        rebindOk.push(...value.split("/").filter((domain) => domain !== ""));
        break;
      case "interface":
        // dnsmasq takes the loopback interface with any other.
        listen.push(...value.split(","), ...(listen.includes("lo") ? [] : ["lo"]));
        break;
      case "listen-address":
        listen.push(...value.split(","));
        break;
      case "no-negcache":
        settings.keepsDenials = false;
        break;
      case "log-queries":
        settings.logsQueries = true;
        break;
      case "no-hosts":
        settings.readsHosts = false;
        break;
      case "no-resolv":
        settings.readsResolvConf = false;
        break;
      case "resolv-file":
        settings.resolvConf = value;
        break;
      case "strict-order":
        settings.strictOrder = true;
        break;
      case "addn-hosts":
        hostsFiles.push(value);
        break;
      case "host-record":
        hostRecords.push(value.split(",").filter((each) => !/^\d+$/.test(each)));
        break;
      case "server":
      case "local":
        readServer(value, servers, domains);
        break;
      case "address":
        readAddress(value, addresses);
        break;
      default:
        if (HARMLESS.has(name)) break;
        if (!WITHOUT_EFFECT.has(name))
          throw new DnsmasqArgumentError(
            `dnsmasq: bad command line options: unrecognized option '--${name}'`,
          );
        without.push(name);
    }
  }
  return settings;
}

function* options(words: readonly string[]): Generator<readonly [string, string]> {
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? "";
    const long = /^--([a-z0-9-]+)(?:=(.*))?$/s.exec(word);
    const short = /^-([A-Za-z])(.*)$/s.exec(word);
    const name = long?.[1] ?? SHORT[short?.[1] ?? ""];
    if (name === undefined) throw new DnsmasqArgumentError(`dnsmasq: bad command line options: '${word}'`);
    let value = long === null ? short?.[2] || undefined : long[2];
    if (value === undefined && WITH_VALUE.has(name)) {
      value = words[++index];
      if (value === undefined)
        throw new DnsmasqArgumentError(`dnsmasq: bad command line options: '${word}' needs a value`);
    }
    const next = words[index + 1];
    if (value === undefined && WITH_OPTIONAL_VALUE.has(name) && next?.startsWith("-") === false) {
      value = next;
      index++;
    }
    yield [name, value ?? ""];
  }
}

/** `ip#port`, `/domain/…/ip#port`, `/domain/` for names that nobody is asked for, `/domain/#` for the servers of all others. */
function readServer(value: string, servers: string[], domains: Map<string, string[]>): void {
  if (!value.startsWith("/")) {
    servers.push(serverAddress(value, value));
    return;
  }
  const parts = value.slice(1).split("/");
  const address = parts.pop() ?? "";
  for (const domain of parts) {
    const known = domains.get(domain) ?? [];
    if (address !== "" && address !== "#") known.push(serverAddress(address, value));
    if (address !== "#") domains.set(domain, known);
  }
}

function serverAddress(text: string, whole: string): string {
  const [, host = "", port = ""] = /^\[?([^\]#@]+)\]?(?:#(\d{1,5}))?(?:@.*)?$/.exec(text) ?? [];
  if (parseIpAddress(host) === undefined)
    throw new DnsmasqArgumentError(`dnsmasq: bad address in --server=${whole}`);
  return forwardAddress({ address: host, port });
}

function readAddress(value: string, addresses: Map<string, string[]>): void {
  const parts = value.replace(/^\//, "").split("/");
  const address = parts.pop() ?? "";
  if (
    !value.startsWith("/") ||
    parts.length === 0 ||
    (address !== "" && address !== "#" && parseIpAddress(address) === undefined)
  )
    throw new DnsmasqArgumentError(`dnsmasq: bad option: --address=${value}`);
  for (const domain of parts) {
    const known = addresses.get(domain) ?? [];
    if (address === "#") known.push("0.0.0.0", "::");
    else if (address !== "") known.push(address);
    addresses.set(domain, known);
  }
}
