/**
 * Names that dnsmasq answers itself (dnsmasq(8); docs/spec/kube-dns.md#dnsmasq): first those of hosts files and `--host-record`,
 * then the longest domain of `--address`, `--local` and `--server` that has a rule for the type.
 */
import { A, AAAA, addressOfReverseName, Name, PTR, type ResourceRecord } from "../../dns/index.ts";
import { Rcode, RecordClass } from "../../dns/numbers.ts";
import { RecordType } from "../../dns/type-names.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import type { Next } from "../../plugin/chain/handler.ts";
import { bareDirective } from "../../plugin/config/schema.ts";
import { definePlugin, type PluginDefinition } from "../../plugin/contract/define-plugin.ts";
import type { Outcome } from "../../plugin/query/outcome.ts";
import type { Query } from "../../plugin/query/query.ts";
import { ZoneList } from "../../plugin/query/zones.ts";
import { CACHE, type CacheView } from "../../plugin/services/cache-view.ts";
import { HostTable } from "../../plugins/hosts/host-table.ts";
import { type HostsLine, readHostsFile } from "../../plugins/hosts/hosts-file.ts";
import type { DnsmasqSettings } from "./dnsmasq-arguments.ts";

/** Directive of this command. It runs before `cache`, because local names are not cached. */
export const LOCAL_NAMES = "dnsmasq_local";

/** The rules for a domain and all names below it. */
interface Rule {
  readonly zone: Name;
  readonly ipv4: string[];
  readonly ipv6: string[];
  /** `--address` without an address: NXDOMAIN. */
  isNowhere: boolean;
  /** Sent to no server. */
  isLocal: boolean;
  /** Has servers of its own, or uses the servers of all other names. */
  isRouted: boolean;
  /** The rule of the next shorter domain. */
  parent: Rule | undefined;
  /** Whether it or one of its parents has addresses. */
  knowsAddresses: boolean;
}

/** Names with one TTL. */
interface Hosts {
  readonly ttl: number;
  readonly table: HostTable;
}

export class DnsmasqLocalNames {
  readonly #hosts: Hosts[] = [];
  readonly #rules = new Map<Name, Rule>();
  readonly #zones: ZoneList;
  readonly #ttl: number;
  readonly #keepsPlainNames: boolean;

  constructor({ localTtl, hostRecords, addresses, domains, keepsPlainNames }: DnsmasqSettings) {
    this.#ttl = localTtl;
    this.#keepsPlainNames = keepsPlainNames;
    for (const { names, addresses: own, ttl = localTtl } of hostRecords)
      for (const address of own) this.#add({ octets: octetsOf(address), names }, ttl);
    for (const [domain, fixed] of addresses) {
      const rule = this.#ruleOf(domain);
      rule.isNowhere = fixed.length === 0;
      for (const address of fixed) (octetsOf(address).length === 4 ? rule.ipv4 : rule.ipv6).push(address);
    }
    for (const [domain, servers] of domains) {
      const rule = this.#ruleOf(domain);
      if (servers === "others" || servers.length > 0) rule.isRouted = true;
      else rule.isLocal = true;
    }
    this.#zones = new ZoneList([...this.#rules.keys()]);
    const shortestFirst = [...this.#rules.values()].toSorted(
      (one, other) => one.zone.labelCount - other.zone.labelCount,
    );
    for (const rule of shortestFirst) {
      rule.parent = rule.zone.parent && this.#ruleFor(rule.zone.parent);
      rule.knowsAddresses = rule.ipv4.length + rule.ipv6.length > 0 || rule.parent?.knowsAddresses === true;
    }
  }

  /** Adds the lines of a hosts file. */
  async addFile(content: Uint8Array): Promise<void> {
    await readHostsFile(content, (line) => this.#add(line, this.#ttl));
  }

  answer(query: Query, next: Next): Outcome | Promise<Outcome> {
    if (query.class !== RecordClass.IN) return next(query);
    const { name, type } = query;
    const hosts = type === RecordType.PTR ? this.#reverse(query) : this.#addresses(query);
    if (hosts !== undefined && hosts.length > 0) return found(query, hosts);
    const isKnown = hosts !== undefined;
    const longest = this.#ruleFor(name);
    const exists = isKnown || longest?.knowsAddresses === true;
    for (let rule = longest; rule !== undefined; rule = rule.parent) {
      const records = [
        ...(rule.ipv4.length > 0 && asksFor(type, RecordType.A) ? this.#a(name, rule.ipv4, this.#ttl) : []),
        ...(rule.ipv6.length > 0 && asksFor(type, RecordType.AAAA)
          ? this.#aaaa(name, rule.ipv6, this.#ttl)
          : []),
      ];
      if (records.length > 0) return found(query, records);
      if (rule.isRouted) return exists ? askForExisting(query, next) : next(query);
      if (rule.isLocal || rule.isNowhere)
        return denied(query, isKnown || rule.ipv4.length + rule.ipv6.length > 0);
    }
    if (this.#keepsPlainNames && name.labelCount === 1) return denied(query, isKnown);
    return exists ? askForExisting(query, next) : next(query);
  }

  /** The addresses of a local name; `undefined` for any other. */
  #addresses(query: Query): ResourceRecord[] | undefined {
    const { name, type } = query;
    const octets = name.folded;
    let records: ResourceRecord[] | undefined;
    for (const { ttl, table } of this.#hosts) {
      const entry = table.find(octets, 0, octets.length);
      if (entry === undefined) continue;
      records ??= [];
      if (asksFor(type, RecordType.A)) records.push(...this.#a(name, entry.ipv4, ttl));
      if (asksFor(type, RecordType.AAAA)) records.push(...this.#aaaa(name, entry.ipv6, ttl));
    }
    return records;
  }

  #reverse({ name }: Query): ResourceRecord[] | undefined {
    const address = addressOfReverseName(name);
    if (address === undefined) return undefined;
    for (const { ttl, table } of this.#hosts) {
      const targets = table.findAddress(address)?.names(1) ?? [];
      if (targets.length > 0) return targets.map((target) => PTR.create(name, ttl, { target }));
    }
    return undefined;
  }

  #a(name: Name, addresses: readonly string[], ttl: number): ResourceRecord[] {
    return [...new Set(addresses)].map((address) => A.create(name, ttl, { address }));
  }

  #aaaa(name: Name, addresses: readonly string[], ttl: number): ResourceRecord[] {
    return [...new Set(addresses)].map((address) => AAAA.create(name, ttl, { address }));
  }

  #ruleFor(name: Name): Rule | undefined {
    const zone = this.#zones.match(name);
    return zone && this.#rules.get(zone);
  }

  #ruleOf(domain: string): Rule {
    const zone = zoneOf(domain);
    for (const rule of this.#rules.values()) if (rule.zone.equals(zone)) return rule;
    const rule: Rule = {
      ...{ zone, ipv4: [], ipv6: [], parent: undefined },
      ...{ isNowhere: false, isLocal: false, isRouted: false, knowsAddresses: false },
    };
    this.#rules.set(zone, rule);
    return rule;
  }

  /** The PTR record leads only to the first name. */
  #add({ octets, names }: HostsLine, ttl: number): void {
    let hosts = this.#hosts.find((each) => each.ttl === ttl);
    if (hosts === undefined) {
      hosts = { ttl, table: new HostTable() };
      this.#hosts.push(hosts);
    }
    for (const [index, text] of names.entries()) {
      const name = Name.tryParse(text);
      if (name !== undefined && !name.isRoot) hosts.table.add(name, octets, index === 0);
    }
  }
}

/**
 * @param current returns the names in force
 * @param started called with the caches behind it
 */
export function localNamesPlugin(
  current: () => DnsmasqLocalNames,
  started: (caches: readonly CacheView[]) => void,
): PluginDefinition<unknown> {
  return definePlugin({
    name: LOCAL_NAMES,
    summary: "Answers for the names that dnsmasq answers itself.",
    config: bareDirective(),
    create: (_config, site) => ({
      start: () => started(CACHE.among(site.block.plugins())),
      handle: (query, next) => current().answer(query, next),
    }),
  });
}

/** The zone of a domain on the command line; `#` is every name. */
export function zoneOf(domain: string): Name {
  return domain === "#" ? Name.root : Name.parse(`${domain.replace(/^\.|\.$/g, "")}.`);
}

function octetsOf(address: string): Uint8Array {
  return parseIpAddress(address) ?? new Uint8Array(4);
}

function asksFor(type: number, wanted: number): boolean {
  return type === wanted || type === RecordType.ANY;
}

function found(query: Query, answer: readonly ResourceRecord[]): Outcome {
  return query.reply({ authoritative: true, recursionAvailable: true, answer });
}

function denied(query: Query, isKnown: boolean): Outcome {
  return query.reply({ recursionAvailable: true, rcode: isKnown ? Rcode.NOERROR : Rcode.NXDOMAIN });
}

/** Servers may answer NXDOMAIN for a local name, but the name exists. */
async function askForExisting(query: Query, next: Next): Promise<Outcome> {
  const outcome = await next(query);
  return outcome.kind === "reply" && outcome.rcode === Rcode.NXDOMAIN ? denied(query, true) : outcome;
}
