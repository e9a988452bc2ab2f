/** What the plugin that knows a cluster does for others of its server block. */
import { ServiceKey } from "../../plugin/contract/service.ts";
import type { ClusterView } from "./cluster-view.ts";

export interface ClusterService {
  /** The cluster as the plugin shows it. To be asked for in `start`, not before. */
  readonly view: ClusterView;
  /**
   * Topology zone and region of a node, or of the first one that says both where the name is empty; undefined where none does, and
   * without a live cluster. @throws the error of the API
   */
  nodePlace?(
    name: string,
    signal: AbortSignal,
  ): Promise<{ readonly zone: string; readonly region: string } | undefined>;
}

export const CLUSTER: ServiceKey<ClusterService> = new ServiceKey("cluster");

/** Offered by a plugin that needs more of the cluster's objects than their names do. */
export interface ClusterWish {
  /** External addresses of services, which are left out otherwise. */
  readonly externalAddresses: boolean;
}

export const CLUSTER_WISH: ServiceKey<ClusterWish> = new ServiceKey("wish for a cluster");
