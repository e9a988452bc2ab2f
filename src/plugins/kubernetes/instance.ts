/** One directive: takes a cluster over from the previous configuration, or starts watching one, and serves it. */

import { setImmediate as nextTurn } from "node:timers/promises";
import type { Name } from "../../dns/name.ts";
import { CLUSTER_WISH } from "../../kubernetes/answers/cluster-service.ts";
import { readTextFile } from "../../lib/files/bounded-file.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { ClusterClients } from "../../plugin/contract/cluster-clients.ts";
import type { SearchPathSource } from "../../plugin/contract/search-path.ts";
import type { Offer } from "../../plugin/contract/service.ts";
import {
  type Handler,
  type PlacedPlugin,
  type PluginFault,
  type PluginInstance,
  type Query,
  SetupError,
  type Site,
  type TransferSource,
} from "../../plugin/index.ts";
import { parseSearchList } from "../../upstream/config/resolv-conf.ts";
import {
  type ClusterPlan,
  contentOfFollower,
  examineCluster,
  type KeptForOthers,
  type KubernetesConfig,
  kindsOf,
  nameOfCluster,
  planCluster,
  reduceOptions,
  sharedZones,
} from "./cluster-plan.ts";
import { ShownCluster } from "./shown-cluster.ts";
import { type ClusterSource, lastingSite, WATCHED_CLUSTER, WatchedCluster } from "./watched-cluster.ts";

export class KubernetesInstance implements PluginInstance {
  readonly #values: KubernetesConfig;
  readonly #site: Site;
  readonly #isFollower: boolean;
  readonly #stopped = Promise.withResolvers<void>();
  /** The cluster of the configuration in force, if it matches this one's options. */
  #former: WatchedCluster | undefined;
  /** Created on first use, when it is decided whether a cluster is taken over. */
  #made: ShownCluster | undefined;
  #isHolding = false;
  /** Whether no configuration has answered queries before. */
  #isFirst = true;
  /** The source of the stores, unless the previous configuration's source is used. */
  #source: ClusterSource | undefined;

  constructor(values: KubernetesConfig, site: Site) {
    this.#values = values;
    this.#site = site;
    this.#isFollower = site.feed.role === "follower";
  }

  readonly handle: Handler = (query, next) => this.#shown.handlerFor(query).handle(query, next);

  async inherit(predecessors: readonly PlacedPlugin[]): Promise<void> {
    this.#isFirst = false;
    const content = await this.#content();
    if (content === undefined) return;
    // Two directives may have the same options: each takes over one cluster.
    const taken = this.#site.shared("taken over", () => new Set<WatchedCluster>());
    this.#former = WATCHED_CLUSTER.among(predecessors).find(
      (cluster) => cluster.content === content && !taken.has(cluster),
    );
    if (this.#former !== undefined) taken.add(this.#former);
  }

  async examine(): Promise<void> {
    if (!this.#isFollower) await examineCluster(this.#values, this.#site);
  }

  async start(): Promise<void> {
    const { cluster, searchPaths } = this.#shown;
    if (searchPaths.wanted) searchPaths.hostSearch = await readHostSearch();
    cluster.hold();
    this.#isHolding = true;
    this.#shown.start();
    if (this.#isFirst) this.#rehearse().catch(this.#report);
    if (this.#isFollower) {
      cluster.content = await this.#content();
      return;
    }
    const plan = await this.#plan();
    cluster.content = plan.content;
    if (cluster.source?.origin === plan.origin) await cluster.source.verify?.();
    else {
      this.#source = plan.makeSource(cluster);
      await cluster.fillFrom(this.#source);
    }
  }

  async warmUp(): Promise<void> {
    const { cluster } = this.#shown;
    if (cluster.isSynced || cluster.source?.live === undefined) return;
    const { waitForCluster } = await import("./live-cluster.ts");
    await waitForCluster(cluster, this.#values.startup_timeout, this.#stopped.promise, this.#site);
  }

  started(): void {
    const { cluster } = this.#shown;
    cluster
      .settle()
      .then(() => cluster.showAs(nameOfCluster(this.#values)))
      .catch(this.#report);
  }

  async stop(): Promise<void> {
    this.#stopped.resolve();
    this.#former = undefined;
    if (!this.#isHolding) return;
    this.#isHolding = false;
    const { cluster } = this.#shown;
    await this.#shown.stop();
    await cluster.release(this.#source);
  }

  ready(): boolean {
    return this.#made?.cluster.isSynced ?? false;
  }

  unfit(): boolean {
    return this.#made?.isStale() ?? false;
  }

  describeState(): string[] {
    return this.#shown.describe();
  }

  faults(): readonly PluginFault[] {
    return this.#shown.faults();
  }

  provideMetadata(query: Query): void {
    this.#shown.provideMetadata(query);
  }

  get transferSource(): TransferSource | undefined {
    return this.#shown.transfers;
  }

  get searchPathSource(): SearchPathSource {
    return this.#shown.searchPaths;
  }

  get services(): readonly Offer<unknown>[] {
    return this.#shown.services;
  }

  get cluster(): ClusterClients {
    return this.#shown.clients;
  }

  get #shown(): ShownCluster {
    this.#made ??= new ShownCluster(this.#values, this.#former ?? this.#newCluster(), this.#site);
    return this.#made;
  }

  #newCluster(): WatchedCluster {
    return new WatchedCluster({
      site: lastingSite(this.#site),
      kinds: kindsOf(this.#values),
      imports: sharedZones(this.#values).length > 0,
      isReplica: this.#isFollower,
      reduce: reduceOptions(this.#values, this.#keptForOthers()),
    });
  }

  readonly #report = (error: unknown): void => this.#site.log.error(messageOf(error));

  /**
   * Starts as soon as there is something to answer, in a turn of the event loop of its own if sockets are open
   * already.
   */
  async #rehearse(): Promise<void> {
    await this.#shown.cluster.store.whenSynced();
    await nextTurn();
    if (this.#isHolding) this.#shown.rehearse();
  }

  /** {@link WatchedCluster.content}; undefined if the options lead to no cluster, which {@link start} will report. */
  async #content(): Promise<string | undefined> {
    try {
      if (this.#isFollower) return await contentOfFollower(this.#values, this.#keptForOthers(), this.#site);
      return (await this.#plan()).content;
    } catch (error) {
      if (error instanceof SetupError) return undefined;
      throw error;
    }
  }

  #plan(): Promise<ClusterPlan> {
    return planCluster(this.#values, this.#keptForOthers(), this.#site);
  }

  #keptForOthers(): KeptForOthers {
    // Other plugins of the block are offered the cluster when it is being created.
    const neighbours = this.#site.block
      .plugins()
      .filter(({ instance }) => !(instance instanceof KubernetesInstance));
    return {
      podLabels: neighbours.some(({ instance }) => instance.metadataZones !== undefined),
      externalAddresses: CLUSTER_WISH.among(neighbours).some((wish) => wish.externalAddresses),
    };
  }
}

/**
 * The domains that kubelet adds to the search path of pods are in this pod's own resolv.conf with `dnsPolicy:
 * Default`.
 */
async function readHostSearch(): Promise<Name[]> {
  try {
    return parseSearchList(await readTextFile("/etc/resolv.conf"));
  } catch {
    return [];
  }
}
