/** Fills a store for commands that are not a server, from the cluster's API or from a folder of manifests. */
import { ApiSource } from "../kubernetes/api/api-source.ts";
import { formatManifestProblem } from "../kubernetes/manifests/manifest-problem.ts";
import { ManifestSource } from "../kubernetes/manifests/manifest-source.ts";
import { SharedValues } from "../kubernetes/objects/shared-values.ts";
import type { ClusterStore } from "../kubernetes/store/store.ts";
import type { Logger } from "../lib/logging/log.ts";
import { MetricsRegistry } from "../lib/metrics/metrics.ts";
import { version } from "../lib/text/version.ts";
import type { Clock } from "../lib/time/clock.ts";
import type { Random } from "../plugin/contract/site.ts";
import { type ClusterClientOptions, findCluster } from "./cluster-client.ts";

export interface ClusterSourceOptions extends Omit<ClusterClientOptions, "clock"> {
  /** Absolute paths of files and folders; empty to use the API. */
  readonly manifests: readonly string[];
  readonly store: ClusterStore;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: Random;
}

export interface PredecessorCluster {
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** @throws ClusterAccessError if the options lead to no cluster */
export async function makeClusterSource(options: ClusterSourceOptions): Promise<PredecessorCluster> {
  const { manifests, store, clock, log, random, environment } = options;
  const reduce = { shared: new SharedValues() };
  if (manifests.length > 0) {
    const source = new ManifestSource({
      store,
      paths: manifests,
      clock,
      reduce,
      onProblem: (problem) => log.warning(`manifests: ${formatManifestProblem(problem)}`),
      onMended: (path) => log.info(`manifests: ${path}: readable again`),
    });
    return { start: () => source.start(), stop: async () => source.stop() };
  }
  const source = new ApiSource({
    store,
    access: await findCluster(options),
    clock,
    random: () => random.fraction(),
    log,
    metrics: new MetricsRegistry({ processMetrics: false }),
    environment,
    userAgent: `Portolan/${version} (${process.platform}/${process.arch})`,
    limits: { qps: 0, burst: 0, maxInflight: 0 },
    reduce,
    labels: "",
    namespaceLabels: "",
    zone: "",
  });
  return { start: async () => source.start(), stop: () => source.stop() };
}
