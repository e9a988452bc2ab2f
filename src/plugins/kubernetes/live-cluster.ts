/** The options that say where the API of a cluster is -> the source that watches it, and the wait for its first lists. */

import { isReverseZone } from "../../kubernetes/answers/cluster-zone.ts";
import {
  type ClusterAccess,
  ClusterAccessError,
  endpointAccess,
  inClusterAccess,
} from "../../kubernetes/api/access.ts";
import { ApiSource } from "../../kubernetes/api/api-source.ts";
import { parseKubeconfig } from "../../kubernetes/api/kubeconfig.ts";
import type { LabelSelector } from "../../kubernetes/objects/label-selector.ts";
import type { ReduceOptions } from "../../kubernetes/objects/reduce.ts";
import { SnapshotFile } from "../../kubernetes/snapshot/snapshot-file.ts";
import type { ClusterStore } from "../../kubernetes/store/store.ts";
import { readTextFile } from "../../lib/bounded-file.ts";
import { loadMemoryRelease } from "../../lib/memory-release.ts";
import { SetupError, type Site, type ZoneList } from "../../plugin/index.ts";

export interface LiveClusterOptions {
  readonly zones: ZoneList;
  readonly endpoint: { readonly url: readonly string[] } | undefined;
  readonly tls: { readonly cert: string; readonly key: string; readonly cacert: string } | undefined;
  readonly kubeconfig: { readonly file: string; readonly context: string | undefined } | undefined;
  /** Undefined and 0 for what is usual. */
  readonly apiserver_qps: number | undefined;
  readonly apiserver_burst: number | undefined;
  readonly apiserver_max_inflight: number | undefined;
  readonly labels: LabelSelector | undefined;
  readonly namespace_labels: LabelSelector | undefined;
  /** Milliseconds. */
  readonly startup_timeout: number;
}

export interface ClusterStores {
  readonly store: ClusterStore;
  /** What is imported from other clusters. */
  readonly imports?: ClusterStore | undefined;
}

/** How often the log says that the start waits. */
const WAIT_MESSAGE_MS = 500;

/**
 * Makes the source; it does nothing yet.
 * @throws SetupError where the options lead to no cluster
 */
export async function makeLiveSource(
  options: LiveClusterOptions,
  stores: ClusterStores,
  reduce: ReduceOptions,
  site: Site,
): Promise<ApiSource> {
  return new ApiSource({
    ...stores,
    access: await findCluster(options, site),
    clock: site.clock,
    random: () => site.random.fraction(),
    log: site.log,
    metrics: site.metrics,
    environment: site.machine.environment,
    userAgent: `Portolan/${site.version} (${process.platform}/${process.arch})`,
    limits: {
      qps: options.apiserver_qps ?? 0,
      burst: options.apiserver_burst ?? 0,
      maxInflight: options.apiserver_max_inflight ?? 0,
    },
    reduce,
    labels: options.labels?.toString() ?? "",
    namespaceLabels: options.namespace_labels?.toString() ?? "",
    memory: await loadMemoryRelease(),
    zone: options.zones.zones.find((zone) => !isReverseZone(zone))?.toString() ?? "",
  });
}

/** Puts the last known state into the store, and keeps the file from now on (the option `snapshot`). */
export async function openSnapshot(
  path: string,
  stores: ClusterStores,
  reduce: ReduceOptions,
  site: Pick<Site, "clock" | "log" | "resolvePath">,
): Promise<SnapshotFile> {
  const { clock, log } = site;
  const file = site.resolvePath(path);
  const report = (words: string, error: unknown) =>
    log.warning(`snapshot ${file} ${words}: ${error instanceof Error ? error.message : String(error)}`);
  const snapshot = new SnapshotFile({
    file,
    ...stores,
    clock,
    reduce,
    onError: (error) => report("cannot be written", error),
  });
  try {
    const { objects, unusable, written } = await snapshot.load();
    log.info(`answering from the snapshot of ${written} until the API is listed: ${objects} objects`);
    if (unusable > 0) log.warning(`snapshot ${file}: ${unusable} lines cannot be used`);
  } catch (error) {
    // At the very first start there is none.
    const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
    if (!isMissing) report("cannot be used", error);
  }
  snapshot.keep();
  return snapshot;
}

/**
 * Waits until everything has been listed once, at most as long as the options say, or until `stopped` resolves. Says what CoreDNS
 * says meanwhile (CoreDNS facts 2.47).
 * @returns false where the time was over first
 */
export async function waitForCluster(
  source: ApiSource,
  { store, imports = store }: ClusterStores,
  timeoutMs: number,
  stopped: Promise<void>,
  site: Pick<Site, "clock" | "log">,
): Promise<boolean> {
  const { clock, log } = site;
  const timedOut = Promise.withResolvers<void>();
  const timeout = clock.after(timeoutMs, timedOut.resolve);
  const reminder = clock.every(WAIT_MESSAGE_MS, () =>
    log.info("waiting for Kubernetes API before starting server"),
  );
  // Commands that ask without listening have no socket, and the clock's timers keep no process alive: it would end while it waits.
  const alive = setInterval(() => undefined, WAIT_MESSAGE_MS);
  const isOver = await Promise.race([
    Promise.all([store.whenSynced(), imports.whenSynced()]),
    timedOut.promise,
    stopped.then(() => true as const),
  ]);
  clearInterval(alive);
  timeout.cancel();
  reminder.cancel();
  if ((store.isSynced && imports.isSynced) || isOver === true) return true;
  log.warning("starting server with unsynced Kubernetes API");
  log.warning(`still to be listed: ${source.awaited.join(", ")}`);
  return false;
}

/** `kubeconfig` before `endpoint`, and neither for the cluster that this is a pod of. */
async function findCluster(
  { kubeconfig, endpoint, tls }: LiveClusterOptions,
  site: Site,
): Promise<ClusterAccess> {
  const { environment } = site.machine;
  try {
    if (kubeconfig !== undefined) {
      const text = await readKubeconfig(kubeconfig.file);
      return parseKubeconfig(text, kubeconfig.file, kubeconfig.context, environment);
    }
    if (endpoint === undefined) return inClusterAccess(environment);
    const files = tls && { certificate: tls.cert, key: tls.key, authority: tls.cacert };
    return endpointAccess(endpoint.url, files, environment);
  } catch (error) {
    if (error instanceof ClusterAccessError) throw new SetupError(error.message);
    throw error;
  }
}

async function readKubeconfig(file: string): Promise<string> {
  try {
    return await readTextFile(file);
  } catch (error) {
    throw new SetupError(`kubeconfig ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
