/** `kubernetes`: the names of a cluster's services and pods (CoreDNS facts 2.47). */
import { resolve } from "node:path";
import type { Name } from "../../dns/name.ts";
import { ClientSearchPaths } from "../../kubernetes/answers/client-search-paths.ts";
import { ClusterAnswers } from "../../kubernetes/answers/cluster-answers.ts";
import { CLUSTER } from "../../kubernetes/answers/cluster-service.ts";
import { ClusterTransfers, joinTransfers } from "../../kubernetes/answers/cluster-transfers.ts";
import { isReverseZone } from "../../kubernetes/answers/cluster-zone.ts";
import type { ApiSource } from "../../kubernetes/api/api-source.ts";
import { formatManifestProblem } from "../../kubernetes/manifests/manifest-problem.ts";
import { ManifestPathError, ManifestSource } from "../../kubernetes/manifests/manifest-source.ts";
import type { LabelSelector } from "../../kubernetes/objects/label-selector.ts";
import type { Kind } from "../../kubernetes/objects/objects.ts";
import type { ReduceOptions } from "../../kubernetes/objects/reduce.ts";
import { SharedValues } from "../../kubernetes/objects/shared-values.ts";
import type { SnapshotFile } from "../../kubernetes/snapshot/snapshot-file.ts";
import { feedChannels } from "../../kubernetes/store/feed-channels.ts";
import { followStore, publishStore } from "../../kubernetes/store/replication.ts";
import { ClusterStore } from "../../kubernetes/store/store.ts";
import { readTextFile } from "../../lib/bounded-file.ts";
import { parseIpAddress } from "../../lib/ip-address.ts";
import { definePlugin, type PlacedPlugin, type Query, SetupError, type Site } from "../../plugin/index.ts";
import { parseSearchList } from "../../upstream/resolv-conf.ts";
import { clusterClients } from "./cluster-clients.ts";
import { config, type ManifestPath } from "./config.ts";
import { CLUSTER_KNOWLEDGE, type ClusterKnowledge, takeOver } from "./handed-over.ts";
import { KubernetesHandler } from "./handler.ts";
import { KubeDnsHandler } from "./kube-dns-handler.ts";
import type { ClusterStores } from "./live-cluster.ts";
import { provideClusterMetadata } from "./metadata.ts";
import { MulticlusterZones } from "./multicluster.ts";
import { Staleness } from "./staleness.ts";
import { describeCluster } from "./state.ts";
import { TouchedNames } from "./touched-names.ts";

/** The stores whose feeds share one. */
const CHANNELS = ["cluster", "imports"] as const;

export default definePlugin({
  name: "kubernetes",
  summary: "Answers for the services and pods of a Kubernetes cluster.",
  config,

  create(values, site) {
    // kube-dns looked at no namespaces, and may have no right to.
    const kinds: Kind[] = values.kube_dns ? ["services"] : ["namespaces", "services"];
    if (!values.noendpoints) kinds.push("endpoints");
    if (values.pods === "verified") kinds.push("pods");
    // One data plane watches the cluster and tells the others.
    const isFollower = site.feed.role === "follower";
    const shared = (values.multicluster?.zones.zones ?? []).filter((zone) => !isReverseZone(zone));
    const zones = values.zones.zones.filter((zone) => !shared.some((other) => other.equals(zone)));
    const feeds =
      shared.length === 0 ? { cluster: site.feed, imports: site.feed } : feedChannels(site.feed, CHANNELS);
    const store = new ClusterStore({ clock: site.clock, kinds, replica: isFollower });
    if (isFollower) followStore(store, feeds.cluster);
    else publishStore(store, feeds.cluster);

    const namespaces = values.namespaces.flatMap(({ namespace }) => namespace);
    const view = {
      ttl: values.ttl,
      namespaces: namespaces.length === 0 ? undefined : new Set(namespaces),
      namespacesBySelector: values.namespace_labels !== undefined,
      objectsBySelector: values.labels !== undefined,
      ignoreEmptyServices: values.ignore !== undefined,
      ownAddresses: () => ownAddresses(site),
    };
    const answers = new ClusterAnswers({
      ...view,
      store,
      zones,
      primary: values.zones.zones.find((zone) => !isReverseZone(zone)),
      pods: values.pods,
      zonal: values.zonal,
    });
    let live: ApiSource | undefined;
    const handler = values.kube_dns
      ? new KubeDnsHandler(answers, values.fallthrough, site.clock)
      : new KubernetesHandler(answers, values.fallthrough, () => live?.awaited, values.wildcards);
    const forget = (names: readonly Name[]): void => {
      for (const { instance } of site.block.plugins()) instance.forget?.(names);
    };
    const touched = new TouchedNames({ store, zones, clock: site.clock, forget });
    const multicluster =
      shared.length === 0
        ? undefined
        : new MulticlusterZones({
            zones: shared,
            cluster: answers.view,
            view,
            fallthrough: values.fallthrough,
            feed: feeds.imports,
            clock: site.clock,
            awaited: () => live?.awaited,
            forget,
          });
    const stores: ClusterStores = { store, imports: multicluster?.store };
    const answersFor = ({ name }: Query): ClusterAnswers =>
      multicluster?.owns(name, answers) ? multicluster.answers : answers;
    store.subscribe((change) => {
      handler.forgetAnswers(change);
      touched.add(change);
    });

    let source: ManifestSource | ApiSource | undefined;
    let snapshot: SnapshotFile | undefined;
    let warmUp: (() => Promise<void>) | undefined;
    const stopped = Promise.withResolvers<void>();
    const reduce = {
      endpointPodNames: values.endpoint_pod_names,
      zones: values.zonal,
      // The neighbours say in their `start` what they want.
      podLabels: false,
      externalAddresses: false,
      shared: new SharedValues(),
    };
    let predecessors: readonly PlacedPlugin[] = [];
    const knowledge: ClusterKnowledge = {
      stores,
      source: () =>
        live === undefined
          ? ""
          : JSON.stringify([
              live.servers,
              [kinds, stores.imports !== undefined, values.zonal, values.endpoint_pod_names],
              [`${values.labels ?? ""}`, `${values.namespace_labels ?? ""}`],
              [reduce.podLabels, reduce.externalAddresses],
            ]),
    };
    const searchPaths = new ClientSearchPaths(answers);
    const staleness = new Staleness({
      stores: multicluster === undefined ? [store] : [store, multicluster.store],
      maxMs: values.max_staleness,
      log: site.log,
    });
    return {
      handle:
        multicluster === undefined
          ? (query, next) => handler.handle(query, next)
          : (query, next) =>
              (multicluster.owns(query.name, answers) ? multicluster.handler : handler).handle(query, next),
      ready: () => store.isSynced && multicluster?.store.isSynced !== false,
      unfit: () => staleness.isStale(),
      describeState: () =>
        describeCluster(
          { zones: values.zones.zones, store, imports: stores.imports, staleness },
          live,
          snapshot?.loadedFrom,
        ),
      provideMetadata: (query) => provideClusterMetadata(query, answersFor(query), answers),
      transferSource: values.kube_dns
        ? undefined
        : multicluster === undefined
          ? new ClusterTransfers(answers)
          : joinTransfers([answers, multicluster.answers].map((each) => new ClusterTransfers(each))),
      searchPathSource: searchPaths,
      services: [
        CLUSTER_KNOWLEDGE.offer(knowledge),
        CLUSTER.offer({
          view: answers.view,
          wantExternalAddresses: () => {
            reduce.externalAddresses = true;
          },
        }),
      ],
      cluster: clusterClients(answers, values.zones.zones, () => live),

      inherit(others) {
        // They are let go when the wait is over, or each would keep all before it.
        if (values.manifests.length === 0) predecessors = others;
      },

      async start() {
        if (searchPaths.wanted) searchPaths.hostSearch = await readHostSearch();
        if (isFollower) return;
        reduce.podLabels = site.block.plugins().some(({ instance }) => instance.metadataZones !== undefined);
        if (values.manifests.length > 0) {
          const manifests = makeManifestSource(values, stores, reduce, site);
          source = manifests;
          await startManifests(manifests);
          return;
        }
        // Loaded here, for it is of no use to whoever has no cluster.
        const { makeLiveSource, openSnapshot, waitForCluster } = await import("./live-cluster.ts");
        const api = await makeLiveSource(values, stores, reduce, site);
        source = api;
        live = api;
        if (values.snapshot !== undefined)
          snapshot = await openSnapshot(values.snapshot, stores, reduce, site);
        api.start();
        warmUp = async () => {
          const isOver = await waitForCluster(api, stores, values.startup_timeout, stopped.promise, site);
          if (!isOver && takeOver(knowledge, predecessors))
            site.log.info("answering from what was known before the reload, until the API is listed");
          predecessors = [];
        };
      },

      warmUp: async () => warmUp?.(),

      async stop() {
        stopped.resolve();
        predecessors = [];
        await source?.stop();
        await snapshot?.stop();
        touched.stop();
        multicluster?.stop();
      },
    };
  },
});

interface ManifestOptions {
  readonly manifests: readonly ManifestPath[];
  readonly labels: LabelSelector | undefined;
  readonly namespace_labels: LabelSelector | undefined;
  readonly endpoint_pod_names: boolean;
}

function makeManifestSource(
  options: ManifestOptions,
  stores: ClusterStores,
  reduce: ReduceOptions,
  site: Site,
): ManifestSource {
  return new ManifestSource({
    ...stores,
    paths: options.manifests.map((path) => resolveManifestPath(path, site)),
    clock: site.clock,
    labels: options.labels,
    namespaceLabels: options.namespace_labels,
    endpointPodNames: options.endpoint_pod_names,
    reduce,
    onProblem(problem) {
      const line = `manifests: ${formatManifestProblem(problem)}`;
      if (problem.severity === "error") site.log.error(line);
      else site.log.warning(line);
    },
  });
}

async function startManifests(source: ManifestSource): Promise<void> {
  try {
    await source.start();
  } catch (error) {
    if (error instanceof ManifestPathError) throw new SetupError(error.message);
    throw error;
  }
}

/** Relative to the directory of `root`; without one, to the file that names it, wherever the server was started. */
function resolveManifestPath({ path, folder }: ManifestPath, site: Site): string {
  return site.block.settings.root === "" ? resolve(folder, path) : resolve(site.resolvePath(path));
}

/** What kubelet adds to the search path of pods is in the resolv.conf that it gave to this one (`dnsPolicy: Default`), if any. */
async function readHostSearch(): Promise<Name[]> {
  try {
    return parseSearchList(await readTextFile("/etc/resolv.conf"));
  } catch {
    return [];
  }
}

/** Where the cluster may find this server: what it is bound to, if that is of use to others, else all its addresses. */
function ownAddresses(site: Site): readonly string[] {
  const bound = site.block.settings.listenHosts.filter(isReachable);
  return bound.length > 0 ? bound : site.machine.addresses();
}

function isReachable(host: string): boolean {
  const octets = parseIpAddress(host);
  if (octets === undefined || octets.every((octet) => octet === 0)) return false;
  const loopback =
    octets.length === 4 ? octets[0] === 127 : octets.every((octet, at) => octet === (at === 15 ? 1 : 0));
  return !loopback;
}
