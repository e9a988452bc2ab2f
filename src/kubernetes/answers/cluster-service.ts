/** What the plugin that knows a cluster does for others of its server block. */
import { ServiceKey } from "../../plugin/service.ts";
import type { ClusterView } from "./cluster-view.ts";

export interface ClusterService {
  /** The cluster as the plugin shows it. */
  readonly view: ClusterView;
  /**
   * Has external addresses of services kept, which are left out otherwise. To be called in `start`, by a plugin that stands in front of
   * the one that knows the cluster: afterwards objects are read.
   */
  wantExternalAddresses(): void;
}

export const CLUSTER: ServiceKey<ClusterService> = new ServiceKey("cluster");
