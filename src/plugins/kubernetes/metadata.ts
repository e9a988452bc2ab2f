/** Metadata for a query for a cluster name, and for the pod that sent it. */

import type { ClusterAnswers } from "../../kubernetes/answers/cluster-answers.ts";
import type { ClusterName } from "../../kubernetes/answers/name-grammar.ts";
import { addressKey } from "../../kubernetes/objects/addresses.ts";
import { copyPod } from "../../kubernetes/store/pods/pod-table.ts";
import type { Query } from "../../plugin/index.ts";

/**
 * Sets the labels of the client, for any query: views and templates depend on them for names outside of the cluster,
 * too. Then sets those of a name in one of the zones of `answers`. @param cluster where to look up the client
 */
export function provideClusterMetadata(query: Query, answers: ClusterAnswers, cluster: ClusterAnswers): void {
  provideClient(query, cluster);
  const zone = answers.zoneOf(query.name);
  if (zone === undefined) return;
  if (zone.isReverse) {
    // As in CoreDNS, which reads reverse names by the grammar of cluster names.
    if (!query.name.equals(zone.name)) query.setMetadata("kubernetes/parse-error", INVALID_NAME);
    return;
  }
  const parsed = answers.parse(query.name, zone);
  if (parsed.kind === "invalid") {
    query.setMetadata("kubernetes/parse-error", INVALID_NAME);
    return;
  }
  query.setMetadata("kubernetes/kind", kindOf(parsed));
  query.setMetadata("kubernetes/namespace", parsed.namespace);
  query.setMetadata("kubernetes/service", parsed.service);
  query.setMetadata("kubernetes/endpoint", parsed.kind === "pod" ? "" : endpointOf(parsed));
  query.setMetadata("kubernetes/cluster", parsed.cluster);
  query.setMetadata("kubernetes/port-name", parsed.port);
  query.setMetadata("kubernetes/protocol", parsed.protocol);
  query.setMetadata("kubernetes/zone", parsed.topologyZone);
}

const INVALID_NAME = "invalid query name";

/** The endpoint without its cluster. */
function endpointOf({ endpoint, cluster }: ClusterName): string {
  return cluster === "" ? endpoint : endpoint.slice(0, -cluster.length - 1);
}

function kindOf({ kind }: ClusterName): string {
  switch (kind) {
    case "namespace":
    case "service":
    case "endpoint":
    case "port":
    case "zonal":
      return "svc";
    case "pod":
    case "podNamespace":
      return "pod";
    default:
      return "";
  }
}

/**
 * Pods are stored with `pods verified` only. Pods on their node's network share its address, so it identifies no pod.
 */
function provideClient(query: Query, answers: ClusterAnswers): void {
  const { store } = answers.view;
  const pod = store.tryRead(() => {
    const [found, other] = store.pods.at(addressKey(query.client.octets));
    return found !== undefined && other === undefined ? copyPod(found) : undefined;
  });
  if (pod === undefined) return;
  query.setMetadata("kubernetes/client-namespace", pod.namespace);
  query.setMetadata("kubernetes/client-pod-name", pod.name);
  for (const [key, value] of pod.labels) query.setMetadata(`kubernetes/client-label/${key}`, value);
}
