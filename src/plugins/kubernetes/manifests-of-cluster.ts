/** The option `manifests`: files in place of an API. */
import {
  logManifestMended,
  logManifestProblem,
  orSetupError,
} from "../../kubernetes/manifests/manifest-setup.ts";
import { ManifestSource } from "../../kubernetes/manifests/manifest-source.ts";
import type { LabelSelector } from "../../kubernetes/objects/label-selector.ts";
import type { PluginFault } from "../../plugin/contract/plugin-instance.ts";
import type { ClusterSource, LastingSite, WatchedCluster } from "./watched-cluster.ts";

export interface ManifestOptions {
  readonly labels: LabelSelector | undefined;
  readonly namespace_labels: LabelSelector | undefined;
  readonly endpoint_pod_names: boolean;
  readonly replicas_as_endpoints: boolean;
}

export class ManifestsOfCluster implements ClusterSource {
  /** Sources with the same paths are the same. */
  readonly origin = "";
  readonly #source: ManifestSource;

  /** @param paths files and folders, absolute */
  constructor(
    { labels, namespace_labels, endpoint_pod_names, replicas_as_endpoints }: ManifestOptions,
    paths: readonly string[],
    { store, imports, reduce }: WatchedCluster,
    { clock, log }: LastingSite,
  ) {
    this.#source = new ManifestSource({
      store,
      imports,
      paths,
      clock,
      labels,
      namespaceLabels: namespace_labels,
      endpointPodNames: endpoint_pod_names,
      replicasAsEndpoints: replicas_as_endpoints,
      reduce,
      onProblem: (problem) => logManifestProblem(problem, log),
      onMended: (path) => logManifestMended(path, log),
    });
  }

  async start(): Promise<void> {
    await orSetupError(() => this.#source.start());
  }

  /** Files that have just changed are read before the reload takes effect. */
  async verify(): Promise<void> {
    await orSetupError(() => this.#source.requirePaths());
    await this.#source.refresh();
  }

  faults(): readonly PluginFault[] {
    return this.#source.problems
      .filter(({ severity }) => severity === "error")
      .map(({ file, line, message }) => ({ subject: `${file}:${line}`, reason: message }));
  }

  async stop(): Promise<void> {
    this.#source.stop();
  }
}
