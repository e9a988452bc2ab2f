/** Status lines of the plugin for `ready`. */
import type { Name } from "../../dns/name.ts";
import { primaryZone } from "../../kubernetes/answers/cluster-zone.ts";
import type { ApiSource } from "../../kubernetes/api/api-source.ts";
import type { ClusterStore } from "../../kubernetes/store/store.ts";
import type { Staleness } from "./staleness.ts";

/**
 * One line for each resource of the cluster: `cluster.local. services: watching, age 3s`. @param imports the store of
 * imports, if there is one @param live the API, if the cluster comes from it @param snapshot when the snapshot was
 * written that the server started from
 */
export function describeCluster(
  {
    zones,
    store,
    imports,
    staleness,
  }: {
    zones: readonly Name[];
    store: ClusterStore;
    imports: ClusterStore | undefined;
    staleness: Staleness;
  },
  live: ApiSource | undefined,
  snapshot: string | undefined,
): string[] {
  const zone = primaryZone(zones);
  const lines = live?.describe() ?? [...describeListed(store), ...describeListed(imports, "imported ")];
  if (snapshot !== undefined && !store.isSynced) lines.push(`answers: from the snapshot of ${snapshot}`);
  lines.push(...staleness.describe());
  return lines.map((line) => `${zone} ${line}`);
}

function describeListed(store: ClusterStore | undefined, prefix = ""): string[] {
  return Array.from(store?.kinds ?? [], (kind) => {
    const age = store?.age(kind);
    const isListed = store?.isKindSynced(kind) && age !== undefined;
    return `${prefix}${kind}: ${isListed ? `synced, age ${Math.floor(age / 1000)}s` : "being listed"}`;
  });
}
