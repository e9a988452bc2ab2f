/** Runs the configuration of a Corefile in this process and asks it. */
import { resolve } from "node:path";
import { nodeHost } from "../../corefile/node-host.ts";
import { PodReadError } from "../../kubernetes/api/watch/read-pod.ts";
import { MAX_FILE_SIZE } from "../../kubernetes/manifests/manifest-source.ts";
import { MemoryLog } from "../../lib/logging/log.ts";
import { SystemClock } from "../../lib/time/clock.ts";
import { formatGoDuration } from "../../lib/time/duration.ts";
import type { ClusterClients } from "../../plugin/contract/cluster-clients.ts";
import type { ExplainQuestion, Explanation } from "../../plugin/contract/explanation.ts";
import { ConfigurationError } from "../../server/configuration/configuration.ts";
import {
  type Substitute,
  withLines,
  withSubstitutes,
} from "../../server/configuration/directive-substitutes.ts";
import { systemRandom, thisMachine } from "../../server/configuration/machine.ts";
import type { PluginRegistry } from "../../server/configuration/plugin-registry.ts";
import { OfflineServer } from "../../server/offline-server.ts";
import { corefilePath, readSource } from "../corefile-source.ts";
import { manifestPaths } from "../manifest-paths.ts";
import { pluginRegistry } from "../plugin-list.ts";
import { faultOfFile } from "../readable-file.ts";
import { runnableCorefile } from "../runnable-corefile.ts";
import { type Explainer, type FoundPod, fault } from "./explainer.ts";
import type { ExplainFlags } from "./flags.ts";
import { podOf, readManifestPods } from "./pods.ts";

/** Milliseconds to wait for the API to return one pod. */
const POD_TIMEOUT = 5_000;

/** Milliseconds to wait for the cluster's lists, whatever startup_timeout is: a person is waiting. */
const PATIENCE = 10_000;

export class LocalExplainer implements Explainer {
  /** Doubts about the answers, one per line. */
  readonly warnings: readonly string[];
  readonly #server: OfflineServer;
  readonly #flags: ExplainFlags;

  private constructor(server: OfflineServer, flags: ExplainFlags, warnings: readonly string[]) {
    this.#server = server;
    this.#flags = flags;
    this.warnings = warnings;
  }

  /** @throws FlagError, ConfigurationError, UnreadableCorefile, PluginListError */
  static async start(flags: ExplainFlags): Promise<LocalExplainer> {
    for (const path of flags.manifests) {
      const reason = faultOfFile(path, { maxMebibytes: MAX_FILE_SIZE / 1024 / 1024, orFolder: true });
      if (reason !== undefined) throw fault(`cannot read the manifests ${path}: ${reason}`);
    }
    const { source, host } = await runnableCorefile(readSource(flags.conf, flags.port), nodeHost);
    const registry = await registryFor(flags);
    const log = new MemoryLog({ debugEnabled: false });
    const clock = new SystemClock();
    const begin = clock.now();
    try {
      const server = await OfflineServer.start({
        source,
        registry,
        host,
        machine: thisMachine(process.env),
        clock,
        random: systemRandom(),
        log,
        defaultPort: flags.port,
        patience: PATIENCE,
      });
      return new LocalExplainer(server, flags, warningsOf(server, log.lines, clock.now() - begin));
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      if (!(error instanceof ConfigurationError))
        throw fault(`cannot run this configuration: ${error.message}`);
      throw fault(`${error.message}${remedy(error.diagnostics[0]?.message ?? "")}`);
    }
  }

  async explain(question: ExplainQuestion): Promise<Explanation> {
    if (this.#flags.again) await this.#server.explain(question);
    return this.#server.explain(question);
  }

  async findPod(namespace: string, name: string): Promise<FoundPod> {
    const [first] = this.#server.clusters;
    if (first === undefined)
      throw fault("-from NAMESPACE/POD: no server block has kubernetes, so there is no cluster domain");
    const { manifests } = this.#flags;
    const { blocks } = this.#server.configuration;
    const paths = manifests.length > 0 ? manifests.map((path) => resolve(path)) : manifestPaths(blocks);
    const live = this.#server.clusters.find(({ isLive }) => isLive);
    const pods = paths.length > 0 ? await readManifestPods(paths) : [];
    const pod = pods.find((each) => each.namespace === namespace && each.name === name);
    if (pod !== undefined) return { pod: { ...pod, assumed: [] }, domain: first.domain };
    if (live !== undefined) return { pod: await podFromApi(live, namespace, name), domain: live.domain };
    if (pods.length === 0) {
      if (first.hasNamespace(namespace) === false)
        throw fault(`-from ${namespace}/${name}: the manifests have no namespace ${namespace}`);
      return { pod: assumedPod(namespace, name, "the manifests have no Pods"), domain: first.domain };
    }
    const known = pods.map((each) => `${each.namespace}/${each.name}`);
    throw fault(
      `-from ${namespace}/${name}: no such pod in the manifests; there are ${known.slice(0, 10).join(", ")}`,
    );
  }

  async stop(): Promise<void> {
    await this.#server.stop();
  }
}

async function podFromApi(
  cluster: ClusterClients,
  namespace: string,
  name: string,
): Promise<FoundPod["pod"]> {
  const full = `${namespace}/${name}`;
  try {
    const object = await cluster.readPod(namespace, name, AbortSignal.timeout(POD_TIMEOUT));
    if (object !== undefined) return { ...podOf(object), assumed: [] };
    const hint =
      cluster.hasNamespace(namespace) === false
        ? `; nor does this Corefile select a namespace ${namespace}`
        : "";
    throw fault(`-from ${full}: the cluster has no such pod${hint}`);
  } catch (error) {
    if (error instanceof PodReadError && error.isForbidden) return assumedPod(namespace, name, error.message);
    if (error instanceof PodReadError) throw fault(`-from ${full}: ${error.message}`);
    if (error instanceof Error && error.name === "TimeoutError")
      throw fault(`-from ${full}: the API has not returned this pod within ${POD_TIMEOUT / 1_000} s`);
    throw error;
  }
}

/** A typical pod, used when pods may not be read. */
function assumedPod(namespace: string, name: string, reason: string): FoundPod["pod"] {
  return {
    namespace,
    name,
    policy: "ClusterFirst",
    hostNetwork: false,
    config: { nameservers: [], searches: [], ndots: undefined },
    addresses: [],
    assumed: ["dnsPolicy ClusterFirst and no dnsConfig, asked from 127.0.0.1", reason],
  };
}

/** The warnings of the log. Those about a cluster that does not answer are joined, with the remedy. */
function warningsOf({ clusters }: OfflineServer, lines: readonly string[], waited: number): string[] {
  const awaited = clusters.flatMap((cluster) => cluster.awaited);
  const warnings = lines.filter((line) => /^\[(WARNING|ERROR)\]/.test(line));
  if (awaited.length === 0) return warnings;
  return [
    ...warnings.filter((line) => !line.includes("plugin/kubernetes: ")),
    `the cluster has not been listed within ${formatGoDuration(Math.round(waited / 100) * 100)}: ${awaited.join(", ")}`,
    "names of the cluster get SERVFAIL until it is: see the reasons above, or give -manifests PATH, which replaces the cluster",
  ];
}

function remedy(message: string): string {
  return message.startsWith("in-cluster configuration") || message.startsWith("kubeconfig")
    ? "\n  note: run explain with -manifests PATH, which replaces the cluster, or query the running server with -server ADDR"
    : "";
}

async function registryFor(flags: ExplainFlags): Promise<PluginRegistry> {
  const { manifests } = flags;
  const registry = await pluginRegistry(flags, corefilePath(flags.conf));
  if (manifests.length === 0) return registry;
  const paths = manifests.map((path) => resolve(path));
  const substitute: Substitute = (directive) =>
    withLines(directive, ["manifests", "endpoint", "tls", "kubeconfig"], [["manifests", ...paths]]);
  return withSubstitutes(registry, new Map([["kubernetes", substitute]]));
}
