/** The plugin's view of client pods, for callers that query as one of them. */
import type { Name } from "../../dns/name.ts";
import type { ClusterAnswers } from "../../kubernetes/answers/cluster-answers.ts";
import { isReverseZone } from "../../kubernetes/answers/cluster-zone.ts";
import type { ApiSource } from "../../kubernetes/api/api-source.ts";
import { formatAddressKey } from "../../kubernetes/objects/addresses.ts";
import type { ClusterClients } from "../../plugin/contract/cluster-clients.ts";

/** @param live the API that the cluster comes from, when it is available */
export function clusterClients(
  { view }: ClusterAnswers,
  zones: readonly Name[],
  live: () => ApiSource | undefined,
): ClusterClients {
  const { store } = view;
  const domain = zones.find((zone) => !isReverseZone(zone)) ?? zones[0];
  return {
    domain: domain === undefined ? "" : domain.toString().toLowerCase().replace(/\.$/, ""),
    keepsPods: store.kinds.has("pods"),
    pod: (namespace, name) =>
      store.tryRead(() => store.pods.named(namespace, name)?.addresses.map((key) => formatAddressKey(key))),
    hasNamespace: (namespace) =>
      store.isKindSynced("namespaces") ? store.tryRead(() => view.hasNamespace(namespace)) : undefined,
    get awaited() {
      return live()?.awaited ?? store.missingKinds;
    },
    get isLive() {
      return live() !== undefined;
    },
    readPod: async (namespace, name, signal) => live()?.readPod(namespace, name, signal),
  };
}
