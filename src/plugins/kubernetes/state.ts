/** How the plugin stands, in words: for `ready`. */
import type { Name } from "../../dns/name.ts";
import type { ApiSource } from "../../kubernetes/api/api-source.ts";
import { isReverseZone } from "../../kubernetes/cluster-zone.ts";
import type { ClusterStore } from "../../kubernetes/store.ts";

/**
 * A line for each resource of the cluster: `cluster.local. services: watching, age 3s`.
 * @param live the API, where that is what the cluster comes from
 * @param snapshot when the snapshot was written that was started from
 */
export function describeCluster(
  store: ClusterStore,
  zones: readonly Name[],
  live: ApiSource | undefined,
  snapshot: string | undefined,
): string[] {
  const zone = zones.find((each) => !isReverseZone(each));
  const lines = live?.describe() ?? [...store.kinds].map((kind) => `${kind}: ${describeListed(store, kind)}`);
  if (snapshot !== undefined && !store.isSynced) lines.push(`answers: from the snapshot of ${snapshot}`);
  return lines.map((line) => `${zone} ${line}`);
}

function describeListed(store: ClusterStore, kind: Parameters<ClusterStore["age"]>[0]): string {
  const age = store.age(kind);
  if (!store.isKindSynced(kind) || age === undefined) return "being listed";
  return `synced, age ${Math.floor(age / 1000)}s`;
}
