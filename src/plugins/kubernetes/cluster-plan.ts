/**
 * Derives from the options which cluster to watch, which parts of it to store, and how to make the source of its
 * stores.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { isReverseZone, primaryZone } from "../../kubernetes/answers/cluster-zone.ts";
import { resolveManifestPath } from "../../kubernetes/api/source-options.ts";
import { requireManifests } from "../../kubernetes/manifests/manifest-setup.ts";
import type { Kind } from "../../kubernetes/objects/objects.ts";
import type { ReduceOptions } from "../../kubernetes/objects/reduce.ts";
import { readTextFile } from "../../lib/files/bounded-file.ts";
import { fileFault } from "../../lib/files/file-fault.ts";
import { nodeChildProcess, nodeCrypto, nodeHttp2, nodeTls } from "../../lib/files/node-modules.ts";
import type { ConfigSchema, Site } from "../../plugin/index.ts";
import { loadUndiciInTurns } from "../../runtime/undici-parts.ts";
import type { config } from "./config.ts";
import { ManifestsOfCluster } from "./manifests-of-cluster.ts";
import { type ClusterSource, type LastingSite, lastingSite, type WatchedCluster } from "./watched-cluster.ts";

export type KubernetesConfig = typeof config extends ConfigSchema<infer T> ? T : never;

export interface ClusterPlan {
  /** The cluster, and the options that select the stored parts of its objects; {@link WatchedCluster.content}. */
  readonly content: string;
  /** {@link ClusterSource.origin}. */
  readonly origin: string;
  makeSource(cluster: WatchedCluster): ClusterSource;
}

/** Data for other plugins of the block, in addition to the data for names. */
export type KeptForOthers = Required<Pick<ReduceOptions, "podLabels" | "externalAddresses">>;

/** The kinds of objects that answers need. */
export function kindsOf(values: KubernetesConfig): Kind[] {
  // kube-dns did not read namespaces, and may lack the permission to.
  const kinds: Kind[] = values.kube_dns ? ["services"] : ["namespaces", "services"];
  if (!values.noendpoints) kinds.push("endpoints");
  if (values.pods === "verified") kinds.push("pods");
  return kinds;
}

/** The zones that several clusters share (`multicluster`) and that hold names of services. */
export function sharedZones(values: KubernetesConfig): KubernetesConfig["zones"]["zones"] {
  return (values.multicluster?.zones.zones ?? []).filter((zone) => !isReverseZone(zone));
}

/** The parts of each object to store. */
export function reduceOptions(
  values: KubernetesConfig,
  others: KeptForOthers,
): Omit<ReduceOptions, "shared"> {
  return { endpointPodNames: values.endpoint_pod_names, zones: values.zonal, ...others };
}

/** The zone that identifies the cluster in metrics. */
export function nameOfCluster(values: KubernetesConfig): string {
  return primaryZone(values.zones.zones)?.toString() ?? "";
}

/** @throws SetupError if the options lead to no cluster */
export async function planCluster(
  values: KubernetesConfig,
  others: KeptForOthers,
  site: Site,
): Promise<ClusterPlan> {
  const lasting: LastingSite = lastingSite(site);
  if (values.manifests.length > 0) {
    const paths = values.manifests.map((path) => resolveManifestPath(path, site));
    return {
      content: contentAt(["files", `${values.replicas_as_endpoints}`, ...paths], values, others),
      origin: "",
      makeSource: (cluster) => new ManifestsOfCluster(values, paths, cluster, lasting),
    };
  }
  // Loaded here because a configuration without a cluster does not need it.
  const { findCluster } = await import("../../kubernetes/api/access/find-cluster.ts");
  await nextTurn();
  const access = await findCluster(values, lasting);
  for (const load of [nodeChildProcess, nodeTls, nodeHttp2]) {
    await nextTurn();
    load();
  }
  await nextTurn();
  // Preloads what the first request needs, in parts: loaded at once, it would block the event loop. The library
  // describes its own messages when it is loaded.
  void (await import("@bufbuild/protobuf/codegenv2")).fileDesc;
  await nextTurn();
  await import("../../kubernetes/api/protobuf/kubernetes-pb.ts");
  await nextTurn();
  await loadUndiciInTurns();
  await nextTurn();
  const { LiveCluster, originOf } = await import("./live-cluster.ts");
  await nextTurn();
  const snapshot = values.snapshot === undefined ? undefined : site.resolvePath(values.snapshot);
  const options = { access, limits: limitsOf(values), snapshot, zone: nameOfCluster(values) };
  const origin = originOf(options);
  return {
    content: contentAt(["servers", ...access.servers], values, others),
    origin,
    makeSource: (cluster) =>
      new LiveCluster({ ...options, ...selectorsOf(values), origin }, cluster, lasting),
  };
}

/**
 * The same for a data plane that follows another one: it does not use the API, so the code that reads a kubeconfig
 * and talks to a server is not loaded in its thread. Two followers are equal only if their leaders are. If other
 * parts of a kubeconfig than the credentials differ, a follower starts a new copy of the leader's stores.
 */
export async function contentOfFollower(
  values: KubernetesConfig,
  others: KeptForOthers,
  site: Site,
): Promise<string> {
  if (values.manifests.length > 0) {
    const paths = values.manifests.map((path) => resolveManifestPath(path, site));
    return contentAt(["files", `${values.replicas_as_endpoints}`, ...paths], values, others);
  }
  const { KUBERNETES_SERVICE_HOST: host = "", KUBERNETES_SERVICE_PORT: port = "" } = site.machine.environment;
  const { kubeconfig, endpoint } = values;
  const file = kubeconfig && [kubeconfig.file, kubeconfig.context ?? "", await fingerprint(kubeconfig.file)];
  return contentAt(["api", host, port, ...(endpoint?.url ?? []), ...(file ?? [])], values, others);
}

/** Fingerprint of a file that the leader could read. */
async function fingerprint(file: string): Promise<string> {
  try {
    return nodeCrypto().hash("sha256", await readTextFile(file));
  } catch (error) {
    return fileFault(error);
  }
}

/** Identifies a cluster, and the options that select the stored parts of it. */
function contentAt(place: readonly string[], values: KubernetesConfig, others: KeptForOthers): string {
  return JSON.stringify([
    place,
    kindsOf(values),
    sharedZones(values).length > 0,
    reduceOptions(values, others),
    `${values.labels ?? ""}`,
    `${values.namespace_labels ?? ""}`,
  ]);
}

/** Checks the files that describe how to reach the cluster. @throws SetupError */
export async function examineCluster(values: KubernetesConfig, site: Site): Promise<void> {
  if (values.manifests.length > 0)
    return requireManifests(values.manifests.map((path) => resolveManifestPath(path, site)));
  // In-cluster settings exist only inside a pod of the cluster.
  if (values.kubeconfig === undefined && values.endpoint === undefined) return;
  const { findCluster } = await import("../../kubernetes/api/access/find-cluster.ts");
  await findCluster(values, lastingSite(site));
  if (values.kubeconfig !== undefined || values.tls === undefined) return;
  // The server starts without these files and retries until they exist.
  for (const file of Object.values(values.tls))
    await readTextFile(file).catch((error: unknown) => site.log.warning(`tls: ${file}: ${fileFault(error)}`));
}

function limitsOf(values: KubernetesConfig) {
  return {
    qps: values.apiserver_qps ?? 0,
    burst: values.apiserver_burst ?? 0,
    maxInflight: values.apiserver_max_inflight ?? 0,
  };
}

function selectorsOf({ labels, namespace_labels }: KubernetesConfig) {
  return { labels: `${labels ?? ""}`, namespaceLabels: `${namespace_labels ?? ""}` };
}
