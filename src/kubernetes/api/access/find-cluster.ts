/** Where the API is, by the options of a directive. */
import { readTextFile } from "../../../lib/files/bounded-file.ts";
import { fileFault } from "../../../lib/files/file-fault.ts";
import { SetupError } from "../../../plugin/contract/define-plugin.ts";
import type { Site } from "../../../plugin/contract/site.ts";
import { type ClusterAccess, ClusterAccessError, endpointAccess, inClusterAccess } from "./access.ts";
import { parseKubeconfig } from "./kubeconfig.ts";

/** The options that say where the API is. */
export interface ClusterAccessOptions {
  readonly endpoint: { readonly url: readonly string[] } | undefined;
  readonly tls: { readonly cert: string; readonly key: string; readonly cacert: string } | undefined;
  readonly kubeconfig: { readonly file: string; readonly context: string | undefined } | undefined;
  /** As with the flags of kube-dns, `endpoint` takes the place of the server in the kubeconfig. */
  readonly kube_dns?: boolean;
}

/**
 * `kubeconfig` before `endpoint`, but with `kube_dns`, and neither for the cluster that this is a pod of.
 * @throws SetupError where that leads to no cluster
 */
export async function findCluster(
  { kubeconfig, endpoint, tls, kube_dns: isKubeDns = false }: ClusterAccessOptions,
  { machine: { environment } }: Pick<Site, "machine">,
): Promise<ClusterAccess> {
  try {
    if (kubeconfig !== undefined) {
      const text = await readKubeconfig(kubeconfig.file);
      const access = parseKubeconfig(text, kubeconfig.file, kubeconfig.context, environment);
      return isKubeDns && endpoint !== undefined ? { ...access, servers: endpoint.url } : access;
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
    throw new SetupError(`kubeconfig ${file}: ${fileFault(error)}`, {
      notes: ["omit 'kubeconfig' to use the cluster that this pod runs in"],
    });
  }
}
