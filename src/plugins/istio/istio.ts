import { A, AAAA, Name, Rcode, RecordType, type ResourceRecord } from "../../dns/index.ts";
import { resolveManifestPath } from "../../kubernetes/api/source-options.ts";
import { requireManifests } from "../../kubernetes/manifests/manifest-setup.ts";
import type { ServiceEntryTable } from "../../kubernetes/store/mesh/service-entry-table.ts";
import { formatIpAddress, parseIpAddress } from "../../lib/net/ip-address.ts";
import type { Offer } from "../../plugin/contract/service.ts";
import type { Next, Outcome, PlacedPlugin, PluginInstance, Query, Site } from "../../plugin/index.ts";
import type { IstioConfig } from "./config.ts";
import { MappingLog } from "./mapping-log.ts";
import { WATCHED_ENTRIES, WatchedEntries } from "./watched-entries.ts";

/** Milliseconds that a start waits for the first listing. */
const STARTUP_TIMEOUT = 5_000;

/** One `istio` directive. */
export class Istio implements PluginInstance {
  readonly #config: IstioConfig;
  readonly #site: Site;
  #watched: WatchedEntries | undefined;
  #predecessors: readonly PlacedPlugin[] = [];
  #forgetting: (() => void) | undefined;
  #log: MappingLog | undefined;
  #uncollect: (() => void) | undefined;

  constructor(config: IstioConfig, site: Site) {
    this.#config = config;
    this.#site = site;
  }

  readonly handle = (query: Query, next: Next): Outcome | Promise<Outcome> => {
    const { zones, fallthrough } = this.#config;
    if (zones.matchQuery(query) === undefined) return next(query);
    const table = this.#watched?.table;
    if (table?.isSynced !== true)
      return query.fail(Rcode.SERVFAIL, new Error("the ServiceEntries are not listed yet"));
    const slot = table.find(query.name);
    if (slot === undefined) {
      query.trace?.note("no ServiceEntry has this host");
      if (fallthrough.permits(query.name)) return next(query);
      return query.reply({ rcode: Rcode.NXDOMAIN, authoritative: true });
    }
    query.trace?.note(`a host of the ServiceEntry ${table.entryOf(slot)}`);
    return query.reply({ authoritative: true, answer: this.#records(query, table, slot) });
  };

  get services(): readonly Offer<unknown>[] {
    return this.#watched === undefined ? [] : [WATCHED_ENTRIES.offer(this.#watched)];
  }

  inherit(predecessors: readonly PlacedPlugin[]): void {
    this.#predecessors = predecessors;
  }

  async examine(): Promise<void> {
    const { manifests, kubeconfig, endpoint } = this.#config;
    if (manifests.length > 0)
      return requireManifests(manifests.map((path) => resolveManifestPath(path, this.#site)));
    // In-cluster settings exist only inside a pod of the cluster.
    if (kubeconfig === undefined && endpoint === undefined) return;
    const { findCluster } = await import("../../kubernetes/api/access/find-cluster.ts");
    await findCluster(this.#config, this.#site);
  }

  async start(): Promise<void> {
    const { default_address: fallback, automatic_addresses: isAutomatic } = this.#config;
    const defaultAddresses = (fallback?.addresses ?? []).flatMap((text) => parseIpAddress(text) ?? []);
    const wanted = await WatchedEntries.plan(this.#config, { defaultAddresses, isAutomatic }, this.#site);
    const known = WATCHED_ENTRIES.among(this.#predecessors);
    this.#predecessors = [];
    const watched = known.find(({ origin }) => origin === wanted.origin) ?? wanted;
    this.#watched = watched;
    this.#listen(watched.table);
    await watched.hold();
  }

  async warmUp(): Promise<void> {
    const table = this.#watched?.table;
    if (table === undefined || table.isSynced) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = this.#site.clock.after(STARTUP_TIMEOUT, resolve);
    await Promise.race([promise, table.whenSynced()]);
    timer.cancel();
  }

  ready(): boolean {
    return this.#watched?.table.isSynced === true;
  }

  async stop(): Promise<void> {
    this.#forgetting?.();
    this.#log?.stop();
    this.#uncollect?.();
    await this.#watched?.letGo();
  }

  describeState(): readonly string[] {
    return this.#watched === undefined ? [] : [this.#watched.describe()];
  }

  #listen(table: ServiceEntryTable): void {
    const { changingNames, clock, log, metrics } = this.#site;
    // Hosts may be anywhere in the name space, and change at run time.
    changingNames.addZones([Name.root]);
    const mappings = new MappingLog(table, clock, log);
    this.#log = mappings;
    this.#forgetting = table.onChange((host) => changingNames.tell([host.name]));
    const gauge = (name: string, help: string) => metrics.gauge({ name, help }).slot();
    const entries = gauge("portolan_istio_service_entries", "ServiceEntries with hosts.");
    const hosts = gauge("portolan_istio_hosts", "Hosts of ServiceEntries.");
    const octets = gauge(
      "portolan_istio_store_octets",
      "Memory used by the hosts of ServiceEntries, in bytes.",
    );
    this.#uncollect = metrics.onCollect(() => {
      entries.set(table.entries);
      hosts.set(table.hosts);
      octets.set(table.octets);
    });
  }

  #records({ name, type }: Query, table: ServiceEntryTable, slot: number): ResourceRecord[] {
    const length = type === RecordType.A ? 4 : type === RecordType.AAAA ? 16 : undefined;
    if (length === undefined) return [];
    const { ttl } = this.#config;
    const octets = table.addresses(slot, length);
    return Array.from({ length: octets.length / length }, (_, index) => {
      const address = formatIpAddress(octets.subarray(index * length, (index + 1) * length));
      return length === 4 ? A.create(name, ttl, { address }) : AAAA.create(name, ttl, { address });
    });
  }
}
