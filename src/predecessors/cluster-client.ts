/** Access to the cluster's API for commands that are not a server. They find it as kubectl and pods do. */

import {
  type ClusterAccess,
  ClusterAccessError,
  endpointAccess,
  inClusterAccess,
} from "../kubernetes/api/access/access.ts";
import { parseKubeconfig } from "../kubernetes/api/access/kubeconfig.ts";
import { ApiClient } from "../kubernetes/api/client/api-client.ts";
import { ApiMetrics } from "../kubernetes/api/client/api-metrics.ts";
import { readWhole } from "../kubernetes/api/client/frames.ts";
import { member, textEntries } from "../kubernetes/objects/json.ts";
import { readTextFile } from "../lib/files/bounded-file.ts";
import { MetricsRegistry } from "../lib/metrics/metrics.ts";
import { messageOf } from "../lib/text/message-of.ts";
import { version } from "../lib/text/version.ts";
import type { Clock } from "../lib/time/clock.ts";

export interface ClusterClientOptions {
  /** Path of a kubeconfig; empty for none. */
  readonly kubeconfig: string;
  /** URL of the API server, replacing that of the kubeconfig; empty for none. */
  readonly server: string;
  readonly clock: Clock;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/**
 * Finds the API: as the options say, else the cluster of this pod.
 * @throws ClusterAccessError
 */
export async function findCluster(options: Omit<ClusterClientOptions, "clock">): Promise<ClusterAccess> {
  const { kubeconfig, server, environment } = options;
  if (kubeconfig !== "") {
    let text: string;
    try {
      text = await readTextFile(kubeconfig);
    } catch (error) {
      throw new ClusterAccessError(`kubeconfig ${kubeconfig}`, messageOf(error));
    }
    const access = parseKubeconfig(text, kubeconfig, undefined, environment);
    return server === "" ? access : { ...access, servers: [server] };
  }
  if (server !== "") return endpointAccess([server], undefined, environment);
  try {
    return inClusterAccess(environment);
  } catch (error) {
    if (!(error instanceof ClusterAccessError)) throw error;
    // Commands select a cluster by flags, not by options of a Corefile.
    throw new ClusterAccessError(
      error.origin,
      error.reason.replace(/;.*/s, "; name a cluster with a flag: see -help"),
    );
  }
}

/** @throws ClusterAccessError */
export async function makeClusterClient(options: ClusterClientOptions): Promise<ApiClient> {
  return new ApiClient({
    access: await findCluster(options),
    clock: options.clock,
    environment: options.environment,
    limits: { qps: 0, burst: 0, maxInflight: 0 },
    metrics: new ApiMetrics(new MetricsRegistry({ processMetrics: false })),
    userAgent: `Portolan/${version} (${process.platform}/${process.arch})`,
  });
}

const MAX_CONFIG_MAP = 4 * 1024 * 1024;

/** The texts of a ConfigMap by key. @throws the error of the API */
export async function readConfigMap(
  client: Pick<ApiClient, "get">,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/configmaps/${encodeURIComponent(name)}`;
  const { body } = await client.get(path, "application/json", signal);
  const octets = await readWhole(body, MAX_CONFIG_MAP);
  const value: unknown = JSON.parse(Buffer.from(octets).toString());
  return member(value, "data") === undefined ? {} : Object.fromEntries(textEntries(value, "data"));
}
