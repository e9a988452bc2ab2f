/**
 * The search path of a pod, as kubelet writes it (docs/spec/kubernetes-dns.md#search-path), known by the pod's address. Told only where the address
 * stands for one pod for certain: who is taken for another is given answers that are not meant for it.
 */
import { Name } from "../../dns/name.ts";
import { formatGoDuration } from "../../lib/time/duration.ts";
import type { SearchPath, SearchPathSource } from "../../plugin/contract/search-path.ts";
import type { Query } from "../../plugin/query/query.ts";
import { addressKey } from "../objects/addresses.ts";
import { whenWhole } from "./busy-store.ts";
import type { ClusterAnswers } from "./cluster-answers.ts";
import { type ClusterZone, joinLabels } from "./cluster-zone.ts";

/**
 * Milliseconds since the source of the pods was last heard of. A server gives a sign of life each minute and a watch that is silent for
 * this long counts as dead: from then on an address may have gone to another pod without our knowing.
 */
const MAX_POD_AGE = 150_000;

/** Paths that are remembered; with more namespaces than this they are made anew. */
const MAX_PATHS = 4_096;

export class ClientSearchPaths implements SearchPathSource {
  readonly #answers: ClusterAnswers;
  readonly #paths = new Map<ClusterZone, Map<string, readonly Name[]>>();
  /** What the node adds to the path of its pods: the search list of this server's own resolv.conf. To be set before the first query. */
  hostSearch: readonly Name[] = [];
  /** Whether a plugin will ask. */
  wanted = false;

  constructor(answers: ClusterAnswers) {
    this.#answers = answers;
  }

  wantSearchPaths(): string | undefined {
    this.wanted = true;
    return this.#answers.view.pods === "verified"
      ? undefined
      : "the pods are not known: it takes 'pods verified' in the block of 'kubernetes'";
  }

  searchPath(query: Query): SearchPath | Promise<SearchPath> {
    const zone = this.#answers.zoneOf(query.name);
    if (zone === undefined || zone.isReverse) return "the name is in no zone that holds names of services";
    const { store, pods: mode } = this.#answers.view;
    if (mode !== "verified") return "the pods of the cluster are not known ('pods verified')";
    if (!store.isSynced) return "the cluster has not been listed completely yet";
    const age = store.age("pods") ?? Number.POSITIVE_INFINITY;
    if (age > MAX_POD_AGE)
      return `nothing was heard of the pods for ${formatGoDuration(Math.floor(age / 1000) * 1000)}`;
    if (!store.isShared) return this.#pathFrom(query, zone);
    return whenWhole(
      () => store.read(() => this.#pathFrom(query, zone)),
      () => "the cluster is being changed",
    );
  }

  #pathFrom(query: Query, zone: ClusterZone): SearchPath {
    const pods = this.#answers.view.store.pods.at(addressKey(query.client.octets));
    const [pod] = pods;
    if (pod === undefined) return `no pod has the address ${query.client.address}`;
    if (pods.length > 1) return `${pods.length} pods have the address ${query.client.address}`;
    if (pod.hostNetwork) return `pod ${pod.namespace}/${pod.name} shares the address of its node`;
    return this.#pathOf(pod.namespace, zone);
  }

  #pathOf(namespace: string, zone: ClusterZone): readonly Name[] {
    let paths = this.#paths.get(zone);
    if (paths === undefined || paths.size > MAX_PATHS) {
      paths = new Map();
      this.#paths.set(zone, paths);
    }
    let path = paths.get(namespace);
    if (path === undefined) {
      const services = Name.fromLabels(["svc"], zone.name);
      const own = joinLabels([namespace], services);
      path = own === undefined ? [] : [own, services, zone.name, ...this.hostSearch];
      paths.set(namespace, path);
    }
    return path;
  }
}
