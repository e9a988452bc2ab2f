/**
 * Zones of what is imported from other clusters (`multicluster`; KEP-1645, kubernetes-dns-spec rule 111). They have a store of their own,
 * which looks like that of a cluster: ServiceImports are its services, and its namespaces are those of this cluster.
 */
import type { Name } from "../../dns/name.ts";
import { ClusterAnswers } from "../../kubernetes/answers/cluster-answers.ts";
import type { ClusterView, ClusterViewOptions } from "../../kubernetes/answers/cluster-view.ts";
import { followStore, publishStore } from "../../kubernetes/store/replication.ts";
import { ClusterStore } from "../../kubernetes/store/store.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Fallthrough, Feed } from "../../plugin/index.ts";
import { KubernetesHandler } from "./handler.ts";
import { TouchedNames } from "./touched-names.ts";

export interface MulticlusterOptions {
  /** At least one, none of them for reverse names. */
  readonly zones: readonly Name[];
  /** The cluster that imports. */
  readonly cluster: ClusterView;
  /** What its view is made of. */
  readonly view: Omit<ClusterViewOptions, "store" | "pods" | "cluster">;
  readonly fallthrough: Fallthrough;
  readonly feed: Feed;
  readonly clock: Clock;
  readonly awaited: () => readonly string[] | undefined;
  readonly forget: (names: readonly Name[]) => void;
}

export class MulticlusterZones {
  readonly store: ClusterStore;
  readonly answers: ClusterAnswers;
  readonly handler: KubernetesHandler;
  readonly #touched: TouchedNames;

  constructor({ zones, cluster, view, fallthrough, feed, clock, awaited, forget }: MulticlusterOptions) {
    const isFollower = feed.role === "follower";
    this.store = new ClusterStore({
      clock,
      // Whatever becomes of the cluster's own endpoints: imports are few.
      kinds: ["namespaces", "services", "endpoints"],
      replica: isFollower,
    });
    if (isFollower) followStore(this.store, feed);
    else publishStore(this.store, feed);
    mirrorNamespaces(cluster.store, this.store);
    this.answers = new ClusterAnswers({
      ...view,
      store: this.store,
      zones,
      pods: "disabled",
      zonal: false,
      multicluster: true,
      cluster,
    });
    this.handler = new KubernetesHandler(this.answers, fallthrough, awaited);
    this.#touched = new TouchedNames({ store: this.store, zones, clock, forget });
    this.store.subscribe((change) => {
      this.handler.forgetAnswers(change);
      this.#touched.add(change);
    });
  }

  /** Whether a name is in one of these zones, and in none of the cluster's own that is longer. */
  owns(name: Name, cluster: ClusterAnswers): boolean {
    const zone = this.answers.zoneOf(name);
    if (zone === undefined) return false;
    const other = cluster.zoneOf(name);
    return other === undefined || other.name.labelCount < zone.name.labelCount;
  }

  stop(): void {
    this.#touched.stop();
  }
}

/** A namespace is the same in all clusters of a set, so those of this one count. */
function mirrorNamespaces(from: ClusterStore, to: ClusterStore): void {
  from.observe({
    put: (kind, object) => {
      if (kind === "namespaces") to.put("namespaces", { namespace: "", name: object.name });
    },
    delete: (kind, identity) => {
      if (kind === "namespaces") to.delete(kind, identity);
    },
    listed: (kind) => {
      if (kind === "namespaces") to.markListed(kind);
    },
    confirmed: (kind) => {
      if (kind === "namespaces") to.confirm(kind);
    },
  });
}
