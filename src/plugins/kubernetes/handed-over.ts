/** What a configuration knows of a cluster, for the next one: a reload while the API is away must not lose it. */
import type { ClusterStore } from "../../kubernetes/store/store.ts";
import { type PlacedPlugin, ServiceKey } from "../../plugin/index.ts";
import type { ClusterStores } from "./live-cluster.ts";

export interface ClusterKnowledge {
  readonly stores: ClusterStores;
  /** The API and all that decides what is kept of its objects. Knowledge is of use where this is the same. Empty for no API. */
  readonly source: () => string;
}

export const CLUSTER_KNOWLEDGE: ServiceKey<ClusterKnowledge> = new ServiceKey("knowledge of a cluster");

/**
 * Fills what the API has not listed with what the plugins in force know of the same cluster.
 * @returns whether anything could be taken over
 */
export function takeOver(own: ClusterKnowledge, predecessors: readonly PlacedPlugin[]): boolean {
  const source = own.source();
  const former = CLUSTER_KNOWLEDGE.among(predecessors).find((other) => other.source() === source);
  if (former === undefined || source === "") return false;
  let isAnything = fill(own.stores.store, former.stores.store);
  const { imports } = own.stores;
  if (imports !== undefined && former.stores.imports !== undefined)
    isAnything = fill(imports, former.stores.imports) || isAnything;
  return isAnything;
}

function fill(store: ClusterStore, former: ClusterStore): boolean {
  const missing = store.missingKinds.filter((kind) => former.isKindSynced(kind));
  for (const kind of missing) store.adopt(kind, former);
  return missing.length > 0;
}
