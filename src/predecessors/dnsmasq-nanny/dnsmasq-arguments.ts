/** The options of dnsmasq that concern names (docs/spec/kube-dns.md#dnsmasq). */
import { Name } from "../../dns/name.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
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
  readonly hostRecords: readonly HostRecord[];
  /** Seconds; for local names. */
  readonly localTtl: number;
  /** Servers for all other names, in the form of `forward`. */
  readonly servers: readonly string[];
  /** Domain -> its servers, or the servers of all other names; no servers if the domain is local only. */
  readonly domains: ReadonlyMap<string, DomainServers>;
  /** Whether names with one label are local only. */
  readonly keepsPlainNames: boolean;
  /** Domain -> addresses; empty for NXDOMAIN. */
  readonly addresses: ReadonlyMap<string, readonly string[]>;
  readonly readsResolvConf: boolean;
  readonly resolvConf: string;
  readonly strictOrder: boolean;
  readonly maxCacheTtl: number | undefined;
  /** Minimum cache TTL in seconds, at most 3600, whatever TTL the answers have. */
  readonly minCacheTtl: number;
  /** Maximum TTL in seconds sent to clients; 0 for no limit. */
  readonly maxTtl: number;
  /** Seconds for which a negative answer without SOA is cached. */
  readonly negTtl: number;
  /** Queries kept from servers, and answers kept from clients. */
  readonly filter: QueryFilterSettings;
}

export type DomainServers = readonly string[] | "others";

/** `--host-record`. */
export interface HostRecord {
  readonly names: readonly string[];
  readonly addresses: readonly string[];
  /** Seconds; `undefined` for the TTL of local names. */
  readonly ttl: number | undefined;
}

export interface QueryFilterSettings {
  readonly domainNeeded: boolean;
  readonly bogusPriv: boolean;
  readonly filterWin2k: boolean;
  readonly stopRebind: boolean;
  readonly rebindOk: readonly string[];
  readonly rebindLocalhostOk: boolean;
}

/** Invalid options. The message is one line in dnsmasq's words. */
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
/** Options that take a value. All others are switches, or take a value only after `=`. */
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
/** Options with an optional value: a following word that begins with a hyphen is not the value. */
const WITH_OPTIONAL_VALUE = new Set(["user", "group", "pid-file"]);
/** Accepted and ignored. */
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

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** @throws DnsmasqArgumentError */
export function readDnsmasqArguments(words: readonly string[]): DnsmasqSettings {
  const listen: string[] = [];
  const hostsFiles: string[] = [];
  const hostRecords: HostRecord[] = [];
  const servers: string[] = [];
  const domains = new Map<string, string[] | "others">();
  const addresses = new Map<string, string[]>();
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
    negTtl: 0,
    keepsPlainNames: false,
    filter,
  };
  const count = (name: string, value: string): number => {
    if (!/^\d{1,9}$/.test(value)) throw new DnsmasqArgumentError(`dnsmasq: bad option: --${name}=${value}`);
    return Number(value);
  };
  for (const [name, value] of options(words)) {
    switch (name) {
      case "port":
        settings.port = count(name, value);
        if (settings.port > MAX_PORT) throw new DnsmasqArgumentError(`dnsmasq: bad port: --port=${value}`);
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
      case "neg-ttl":
        settings.negTtl = count(name, value);
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
        for (const domain of value.split("/").filter((each) => each !== ""))
          rebindOk.push(checkedDomain(domain, `--rebind-domain-ok=${value}`));
        break;
      case "interface":
        // dnsmasq adds the loopback interface to any other.
        listen.push(...checkedEach(name, value, isInterfaceName), ...(listen.includes("lo") ? [] : ["lo"]));
        break;
      case "listen-address":
        listen.push(...checkedEach(name, value, (word) => parseIpAddress(word) !== undefined));
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
        hostRecords.push(readHostRecord(value));
        break;
      case "server":
      case "local":
        if (value === "//") settings.keepsPlainNames = true;
        else readServer(value, servers, domains);
        break;
      case "address":
        readAddress(value, addresses);
        break;
      default:
        if (!HARMLESS.has(name))
          throw new DnsmasqArgumentError(
            `dnsmasq: bad command line options: unrecognized option '--${name}'`,
          );
    }
  }
  return settings;
}

const MAX_PORT = 65_535;

function isInterfaceName(word: string): boolean {
  return /^[^\s/"'{}]{1,15}$/.test(word);
}

/** The words of a comma-separated list. */
function checkedEach(name: string, value: string, isFine: (word: string) => boolean): string[] {
  const words = value.split(",");
  if (words.every((word) => isFine(word))) return words;
  throw new DnsmasqArgumentError(`dnsmasq: bad option: --${name}=${value}`);
}

function* options(words: readonly string[]): Generator<readonly [string, string]> {
  for (let index = 0; index < words.length; index++) {
    let word = words[index] ?? "";
    // One-letter switches may be joined, with a last one that takes a value.
    for (
      let letter = SHORT[word[1] ?? ""];
      /^-[A-Za-z]{2}/.test(word) && isSwitch(letter);
      letter = SHORT[word[1] ?? ""]
    ) {
      yield [letter, ""];
      word = `-${word.slice(2)}`;
    }
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

function isSwitch(name: string | undefined): name is string {
  return (
    name !== undefined && !WITH_VALUE.has(name) && !WITH_OPTIONAL_VALUE.has(name) && name !== "conf-file"
  );
}

/**
 * `ip#port`, `/domain/…/ip#port`, `/domain/` for names that are sent to no server, `/domain/#` for the servers of all other names.
 */
function readServer(value: string, servers: string[], domains: Map<string, string[] | "others">): void {
  if (!value.startsWith("/")) {
    servers.push(serverAddress(value, value));
    return;
  }
  const parts = value.slice(1).split("/");
  const address = parts.pop() ?? "";
  for (const domain of parts.map((part) => checkedDomain(part, `--server=${value}`))) {
    if (address === "#") {
      domains.set(domain, "others");
      continue;
    }
    const known = domains.get(domain);
    const own = known === undefined || known === "others" ? [] : known;
    if (address !== "") own.push(serverAddress(address, value));
    domains.set(domain, own);
  }
}

/** In lower case, without dots at its ends. */
function checkedDomain(text: string, option: string): string {
  const domain = text.toLowerCase().replaceAll(/^\.|\.$/g, "");
  if (domain === "#" || (/^[^\s"'{}*\\]+$/.test(domain) && Name.tryParse(`${domain}.`) !== undefined))
    return domain;
  throw new DnsmasqArgumentError(`dnsmasq: bad domain '${text}' in ${option}`);
}

/** `NAME,…[,ADDRESS…][,TTL]`. */
function readHostRecord(value: string): HostRecord {
  const words = value.split(",").map((word) => word.trim());
  const last = words.at(-1) ?? "";
  const ttl = words.length > 1 && /^\d{1,9}$/.test(last) ? Number(last) : undefined;
  const rest = ttl === undefined ? words : words.slice(0, -1);
  const addresses = rest.filter((word) => parseIpAddress(word) !== undefined);
  const names = rest.filter((word) => parseIpAddress(word) === undefined);
  if (
    addresses.length === 0 ||
    names.length === 0 ||
    names.some((name) => name === "" || Name.tryParse(name) === undefined)
  )
    throw new DnsmasqArgumentError(`dnsmasq: bad host-record at --host-record=${value}`);
  return { names, addresses, ttl };
}

function serverAddress(text: string, whole: string): string {
  const [, host = "", port = ""] = /^\[?([^\]#@]+)\]?(?:#(\d{1,5}))?(?:@.*)?$/.exec(text) ?? [];
  if (parseIpAddress(host) === undefined || Number(port) > MAX_PORT)
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
  for (const domain of parts.map((part) => checkedDomain(part, `--address=${value}`))) {
    const known = addresses.get(domain) ?? [];
    if (address === "#") known.push("0.0.0.0", "::");
    else if (address !== "") known.push(address);
    addresses.set(domain, known);
  }
}
