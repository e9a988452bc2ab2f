/** Finds the pod whose queries to explain. */

import { RequestError } from "../../console/http/request-error.ts";
import type { ClusterClients } from "../../plugin/contract/cluster-clients.ts";
import type { PodRequest } from "./request.ts";

export interface PodFacts extends PodRequest {
  /** The cluster domain, without final dot. */
  readonly domain: string;
  /** As text; empty if they are unknown. */
  readonly addresses: readonly string[];
  /** Assumptions about the pod, as text. */
  readonly assumed: readonly string[];
}

/** @throws RequestError */
export function findPod(clusters: readonly ClusterClients[], { namespace, name }: PodRequest): PodFacts {
  const [first] = clusters;
  if (first === undefined) {
    throw new RequestError(404, "no server block has kubernetes, so there are no pods and no cluster domain");
  }
  const policy = "dnsPolicy ClusterFirst and no dnsConfig: a server does not read those of pods";
  for (const cluster of clusters) {
    const addresses = cluster.pod(namespace, name);
    if (addresses !== undefined)
      return { namespace, name, domain: cluster.domain, addresses, assumed: [policy] };
  }
  const full = `${namespace}/${name}`;
  if (clusters.every(({ keepsPods, awaited }) => keepsPods && awaited.length === 0))
    throw new RequestError(404, `the cluster has no pod ${full} that runs and has an address`);
  if (clusters.every((cluster) => cluster.hasNamespace(namespace) === false))
    throw new RequestError(
      404,
      `the cluster has no namespace ${namespace}, or the Corefile does not select it`,
    );
  const pod = `that pod ${full} exists: the server stores no pods without 'pods verified', so the client address is 127.0.0.1`;
  return { namespace, name, domain: first.domain, addresses: [], assumed: [pod, policy] };
}
