/**
 * Zones of services that are imported from other clusters (`multicluster`; KEP-1645,
 * docs/spec/kubernetes-dns.md#multicluster). They have a store of their own, shaped like that of a cluster: its
 * services are ServiceImports, and its namespaces are those of this cluster.
 */
import type { Name } from "../../dns/name.ts";
import { ClusterAnswers } from "../../kubernetes/answers/cluster-answers.ts";
import type { ClusterView, ClusterViewOptions } from "../../kubernetes/answers/cluster-view.ts";
import type { ClusterStore } from "../../kubernetes/store/store.ts";
import type { Clock, Fallthrough } from "../../plugin/index.ts";
import { KubernetesHandler } from "./handler.ts";
import { TouchedNames } from "./touched-names.ts";

export interface MulticlusterOptions {
  /** At least one zone, and no reverse zone. */
  readonly zones: readonly Name[];
  /** The cluster that imports. */
  readonly cluster: ClusterView;
  /** Options of its view. */
  readonly view: Omit<ClusterViewOptions, "store" | "pods" | "cluster">;
  readonly fallthrough: Fallthrough;
  /** The imported services. */
  readonly store: ClusterStore;
  readonly clock: Clock;
  readonly awaited: () => readonly string[] | undefined;
  readonly forget: (names: readonly Name[]) => void;
}

export class MulticlusterZones {
  readonly store: ClusterStore;
  readonly answers: ClusterAnswers;
  readonly handler: KubernetesHandler;
  readonly #touched: TouchedNames;
  #unsubscribe: (() => void) | undefined;

  constructor({ zones, cluster, view, fallthrough, store, clock, awaited, forget }: MulticlusterOptions) {
    this.store = store;
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
    this.#touched = new TouchedNames({ store, zones, clock, forget });
  }

  /** Follows changes of imports, until {@link stop}. */
  start(): void {
    this.#unsubscribe = this.store.subscribe((change) => {
      this.handler.forgetAnswers(change);
      this.#touched.add(change);
    });
  }

  /** Whether a name is in one of these zones, and not in a longer zone of the cluster itself. */
  owns(name: Name, cluster: ClusterAnswers): boolean {
    const zone = this.answers.zoneOf(name);
    if (zone === undefined) return false;
    const other = cluster.zoneOf(name);
    return other === undefined || other.name.labelCount < zone.name.labelCount;
  }

  stop(): void {
    this.#unsubscribe?.();
    this.#touched.stop();
  }
}
