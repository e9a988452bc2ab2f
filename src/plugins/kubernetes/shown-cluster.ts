/**
 * The answers that one configuration makes from a cluster, and its subscriptions to changes. The cluster may outlive
 * the configuration.
 */

import type { Name } from "../../dns/name.ts";
import { RecordType } from "../../dns/type-names.ts";
import { ClientSearchPaths } from "../../kubernetes/answers/client-search-paths.ts";
import { ClusterAnswers } from "../../kubernetes/answers/cluster-answers.ts";
import { CLUSTER } from "../../kubernetes/answers/cluster-service.ts";
import { clusterTransfers, joinTransfers } from "../../kubernetes/answers/cluster-transfers.ts";
import { isReverseZone, joinLabels, primaryZone } from "../../kubernetes/answers/cluster-zone.ts";
import type { FollowedZones } from "../../kubernetes/answers/followed-zones.ts";
import { feedChannels } from "../../kubernetes/store/sharing/feed-channels.ts";
import { publishStore } from "../../kubernetes/store/sharing/replication.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import type { ClusterClients } from "../../plugin/contract/cluster-clients.ts";
import type { PluginFault } from "../../plugin/contract/plugin-instance.ts";
import type { Offer } from "../../plugin/contract/service.ts";
import { DROPPED, type Query, type Site, type TransferSource } from "../../plugin/index.ts";
import { rehearsalQuery } from "../../plugin/query/rehearsal.ts";
import { loadPageRelease } from "../../runtime/memory-release.ts";
import { clusterClients } from "./cluster-clients.ts";
import { type KubernetesConfig, sharedZones } from "./cluster-plan.ts";
import { KubernetesHandler } from "./handler.ts";
import { KubeDnsHandler } from "./kube-dns-handler.ts";
import { provideClusterMetadata } from "./metadata.ts";
import { MulticlusterZones } from "./multicluster.ts";
import { Staleness } from "./staleness.ts";
import { describeCluster } from "./state.ts";
import { TouchedNames } from "./touched-names.ts";
import { WATCHED_CLUSTER, type WatchedCluster } from "./watched-cluster.ts";

/** Stores that share one feed. */
const CHANNELS = ["cluster", "imports"] as const;

export type AnsweringHandler = KubernetesHandler | KubeDnsHandler;

export class ShownCluster {
  readonly cluster: WatchedCluster;
  readonly searchPaths: ClientSearchPaths;
  /** kube-dns had no zone transfers. */
  readonly transfers: TransferSource | undefined;
  readonly #transferred: readonly FollowedZones[];
  readonly clients: ClusterClients;
  readonly services: readonly Offer<unknown>[];
  readonly #zones: readonly Name[];
  readonly #site: Site;
  readonly #answers: ClusterAnswers;
  readonly #handler: AnsweringHandler;
  readonly #multicluster: MulticlusterZones | undefined;
  readonly #touched: TouchedNames;
  readonly #staleness: Staleness;
  readonly #ends: (() => void)[] = [];

  /** Subscribes to nothing before {@link start}. */
  constructor(values: KubernetesConfig, cluster: WatchedCluster, site: Site) {
    const { store, imports } = cluster;
    const shared = sharedZones(values);
    const zones = values.zones.zones.filter((zone) => !shared.some((other) => other.equals(zone)));
    const namespaces = values.namespaces.flatMap(({ namespace }) => namespace);
    const view = {
      ttl: values.ttl,
      namespaces: namespaces.length === 0 ? undefined : new Set(namespaces),
      namespacesBySelector: values.namespace_labels !== undefined,
      objectsBySelector: values.labels !== undefined,
      ignoreEmptyServices: values.ignore !== undefined,
      ownAddresses: () => ownAddresses(site),
    };
    this.cluster = cluster;
    this.#zones = values.zones.zones;
    this.#site = site;
    this.#answers = new ClusterAnswers({
      ...view,
      store,
      zones,
      primary: primaryZone(this.#zones),
      pods: values.pods,
      zonal: values.zonal,
    });
    const live = () => cluster.source?.live;
    const awaited = () => live()?.awaited;
    site.changingNames.addZones(this.#zones);
    const forget = (names: readonly Name[]): void => site.changingNames.tell(names);
    const { clock, log } = site;
    const { fallthrough } = values;
    this.#handler = values.kube_dns
      ? new KubeDnsHandler(this.#answers, fallthrough, clock)
      : new KubernetesHandler(this.#answers, fallthrough, awaited, values.wildcards);
    this.#touched = new TouchedNames({ store, zones, clock, forget });
    this.#multicluster =
      imports &&
      new MulticlusterZones({
        ...{ zones: shared, cluster: this.#answers.view, view, fallthrough, store: imports },
        ...{ clock, awaited, forget },
      });
    const all =
      this.#multicluster === undefined ? [this.#answers] : [this.#answers, this.#multicluster.answers];
    this.#transferred = values.kube_dns ? [] : all.map((answers) => clusterTransfers(answers, clock));
    this.transfers = values.kube_dns ? undefined : joinTransfers(this.#transferred);
    this.searchPaths = new ClientSearchPaths(this.#answers);
    this.clients = clusterClients(this.#answers, this.#zones, live);
    this.services = [
      WATCHED_CLUSTER.offer(cluster),
      CLUSTER.offer({
        view: this.#answers.view,
        nodePlace: async (name, signal) => live()?.nodePlace(name, signal),
      }),
    ];
    this.#staleness = new Staleness({
      stores: imports === undefined ? [store] : [store, imports],
      maxMs: values.max_staleness,
      log,
    });
  }

  /** Follows changes of the cluster from now on, and forwards them to followers. */
  start(): void {
    const { store, imports } = this.cluster;
    // The names of what changed are for plugins that keep answers, such as `cache`. A block without one needs none.
    const areKept = this.#site.block.plugins().some(({ instance }) => instance.forget !== undefined);
    this.#ends.push(
      store.subscribe((change) => {
        this.#handler.forgetAnswers(change);
        if (areKept) this.#touched.add(change);
      }),
    );
    this.#multicluster?.start();
    const { feed, metrics } = this.#site;
    const remembered = metrics
      .gauge({
        name: "portolan_memory_answers_bytes",
        help: "Memory used by memoized answers of the cluster, in bytes.",
        acrossThreads: "sum",
      })
      .slot();
    this.#ends.push(metrics.onCollect(() => remembered.set(this.#handler.rememberedOctets)));
    if (imports === undefined) this.#connect(feed, "cluster");
    else {
      const feeds = feedChannels(feed, CHANNELS);
      for (const channel of CHANNELS) this.#connect(feeds[channel], channel);
    }
  }

  /**
   * Answers one query before the first client does: see `plugin/query/rehearsal.ts`. The answer is a real one, so it
   * may be memoized.
   */
  rehearse(): void {
    const { store } = this.cluster;
    const zone = this.#zones.find((each) => !isReverseZone(each));
    if (zone === undefined) return;
    for (const { name, namespace } of store.objects("services")) {
      const question = joinLabels([name, namespace, "svc"], zone);
      if (question === undefined) continue;
      const query = rehearsalQuery(question, RecordType.A, this.#site.clock.now());
      void this.handlerFor(query).handle(query, () => DROPPED);
      return;
    }
  }

  async stop(): Promise<void> {
    for (const end of this.#ends.splice(0)) end();
    this.#touched.stop();
    for (const zones of this.#transferred) zones.stop();
    this.#multicluster?.stop();
    const releasePages = await loadPageRelease();
    this.#handler.release(releasePages);
    this.#multicluster?.handler.release(releasePages);
  }

  /** Takes the query, not its name: making a `Name` costs as much as finding a memoized answer. */
  handlerFor(query: Query): AnsweringHandler {
    const multicluster = this.#multicluster;
    return multicluster?.owns(query.name, this.#answers) ? multicluster.handler : this.#handler;
  }

  provideMetadata(query: Query): void {
    const multicluster = this.#multicluster;
    const owner = multicluster?.owns(query.name, this.#answers) ? multicluster : undefined;
    provideClusterMetadata(query, owner?.answers ?? this.#answers, this.#answers);
  }

  isStale(): boolean {
    return this.#staleness.isStale();
  }

  describe(): string[] {
    const { store, imports, source } = this.cluster;
    const shown = { zones: this.#zones, store, imports, staleness: this.#staleness };
    return describeCluster(shown, source?.live, source?.loadedFrom);
  }

  faults(): readonly PluginFault[] {
    const { source } = this.cluster;
    return [...(source?.live?.faults() ?? []), ...(source?.faults?.() ?? [])];
  }

  #connect(feed: Site["feed"], channel: (typeof CHANNELS)[number]): void {
    const { replicas, store, imports } = this.cluster;
    const followed = channel === "cluster" ? store : imports;
    if (replicas !== undefined) {
      const end = replicas[channel]?.follow(feed);
      if (end !== undefined) this.#ends.push(end);
    } else if (followed !== undefined) this.#ends.push(publishStore(followed, feed));
  }
}

/**
 * Addresses under which the cluster reaches this server: the bound addresses except loopback, or all addresses of the
 * machine if it is bound to all.
 */
function ownAddresses(site: Site): readonly string[] {
  const { listenHosts } = site.block.settings;
  const bound = listenHosts.filter(isReachable);
  const onAll = listenHosts.length === 0 || listenHosts.some(isWildcard);
  return bound.length === 0 && onAll ? site.machine.addresses() : bound;
}

function isWildcard(host: string): boolean {
  return parseIpAddress(host)?.every((octet) => octet === 0) ?? true;
}

function isReachable(host: string): boolean {
  const octets = parseIpAddress(host);
  if (octets === undefined || isWildcard(host)) return false;
  const loopback =
    octets.length === 4 ? octets[0] === 127 : octets.every((octet, at) => octet === (at === 15 ? 1 : 0));
  return !loopback;
}
