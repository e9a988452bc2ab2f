/** Addresses of clients -> what runs there, as far as the cluster is known. */
import { CLUSTER } from "../kubernetes/answers/cluster-service.ts";
import { addressKey } from "../kubernetes/objects/addresses.ts";
import type { ClusterStore } from "../kubernetes/store/store.ts";
import { parseIpAddress } from "../lib/net/ip-address.ts";
import type { ServerView } from "../plugin/contract/server-view.ts";

/** Addresses that are remembered; the oldest go. */
const REMEMBERED = 4_096;
/** Milliseconds for which they are, and for which one is that nothing is known of: a pod may ask before the cluster tells of it. */
const LIFETIME = 10_000;
const UNKNOWN_LIFETIME = 1_000;

export class Workloads {
  readonly #view: () => ServerView | undefined;
  readonly #now: () => number;
  readonly #known = new Map<string, string>();
  #knownSince = 0;
  readonly #unknown = new Set<string>();
  #unknownSince = 0;

  constructor(view: () => ServerView | undefined, now: () => number) {
    this.#view = view;
    this.#now = now;
  }

  /** `namespace/name` of the pod, else of a service that has it for an endpoint; `undefined` where neither is known. */
  of(address: string): string | undefined {
    const now = this.#now();
    if (now - this.#knownSince > LIFETIME || this.#known.size >= REMEMBERED) {
      this.#known.clear();
      this.#knownSince = now;
    }
    if (now - this.#unknownSince > UNKNOWN_LIFETIME || this.#unknown.size >= REMEMBERED) {
      this.#unknown.clear();
      this.#unknownSince = now;
    }
    const known = this.#known.get(address);
    if (known !== undefined || this.#unknown.has(address)) return known;
    const found = this.#find(address);
    if (found === undefined) this.#unknown.add(address);
    else this.#known.set(address, found);
    return found;
  }

  namespaceOf(address: string): string | undefined {
    return this.of(address)?.split("/", 1)[0];
  }

  /** Every store of a cluster that the configuration in force has, once each. */
  stores(): ClusterStore[] {
    const plugins =
      this.#view()
        ?.blocks()
        .flatMap((block) => block.plugins) ?? [];
    return [...new Set(CLUSTER.among(plugins).map(({ view }) => view.store))];
  }

  #find(address: string): string | undefined {
    const octets = parseIpAddress(address);
    if (octets === undefined) return undefined;
    const key = addressKey(octets);
    for (const store of this.stores()) {
      // Pods on their node's network share its address: the client among them is unknown.
      const pods = store.pods.at(key);
      const [pod] = pods;
      if (pod !== undefined && pods.length === 1) return `${pod.namespace}/${pod.name}`;
      const [set] = store.services.endpointSetsAt(key);
      if (set !== undefined) return `${set.namespace}/${set.service}`;
    }
    return undefined;
  }
}
