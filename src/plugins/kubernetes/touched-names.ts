/**
 * Names of answers that a change in the cluster makes stale. The cache of the same block receives these names and
 * drops exactly their answers, so that the name of a new pod is right at once.
 */
import { Name } from "../../dns/name.ts";
import { isReverseZone, joinDotted, joinLabels } from "../../kubernetes/answers/cluster-zone.ts";
import { OutdatedClusterNames } from "../../kubernetes/answers/outdated-names.ts";
import type { AddressKey } from "../../kubernetes/objects/addresses.ts";
import { serviceKey } from "../../kubernetes/objects/names.ts";
import type { ClusterStore } from "../../kubernetes/store/store.ts";
import { reverseName } from "../../kubernetes/store/tables/reverse-names.ts";
import type { StoreChange } from "../../kubernetes/store/tables/store-change.ts";
import type { Clock } from "../../plugin/index.ts";

/** A zone of services. */
interface ForwardZone {
  readonly zone: Name;
  /** The parent of services: `svc.cluster.local.` */
  readonly services: Name;
  /**
   * Prefix of a service's key that distinguishes the zones. Empty for the first zone, whose keys need no further
   * text.
   */
  readonly prefix: string;
}

export class TouchedNames {
  readonly #store: ClusterStore;
  readonly #forward: readonly ForwardZone[];
  readonly #reverse: readonly Name[];
  /** Whether all reverse names of the family are in one of the zones. */
  readonly #hasIpv4: boolean;
  readonly #hasIpv6: boolean;
  readonly #outdated: OutdatedClusterNames;

  constructor(options: {
    store: ClusterStore;
    zones: readonly Name[];
    clock: Clock;
    forget: (names: readonly Name[]) => void;
  }) {
    this.#store = options.store;
    const forward = options.zones.filter((zone) => !isReverseZone(zone));
    // A zone so long that "svc" does not fit has no services.
    this.#forward = forward.map((zone, index) => ({
      zone,
      services: joinLabels(["svc"], zone) ?? zone,
      prefix: index === 0 ? "" : `${index}/`,
    }));
    this.#reverse = options.zones.filter(isReverseZone);
    const isServed = (root: Name): boolean => this.#reverse.some((zone) => root.isAtOrBelow(zone));
    this.#hasIpv4 = isServed(IPV4_ROOT);
    this.#hasIpv6 = isServed(IPV6_ROOT);
    this.#outdated = new OutdatedClusterNames({
      zones: [...forward, ...this.#reverse],
      clock: options.clock,
      forget: options.forget,
      complete: () => this.#addAliases(),
    });
  }

  add(change: StoreChange): void {
    const outdated = this.#outdated;
    // While lists arrive, everything changes: a list of all names would be built for a cache that is still empty.
    if (change.everything || !this.#store.isSynced) {
      outdated.addAll();
      outdated.schedule();
      return;
    }
    for (const service of change.services) this.#addService(service);
    for (const { zone } of this.#forward) {
      for (const namespace of change.namespaces) {
        outdated.addBelow(zone, `${namespace}.svc`);
        outdated.addBelow(zone, `${namespace}.pod`);
      }
      if (change.podAddresses.length > 0) outdated.addBelow(zone, "pod");
    }
    if (this.#reverse.length > 0) for (const key of change.addresses) this.#addReverse(key);
    outdated.schedule();
  }

  stop(): void {
    this.#outdated.stop();
  }

  /** @param service `service.namespace` */
  #addService(service: string): void {
    const outdated = this.#outdated;
    for (const { services, prefix } of this.#forward) {
      // All other keys end in a dot, or are numbers.
      const key = prefix === "" ? service : prefix + service;
      if (outdated.has(key)) continue;
      // A longer name than DNS allows cannot have been queried.
      const name = joinDotted(service, services);
      if (name !== undefined) outdated.add(name, key);
    }
  }

  #addReverse(address: AddressKey): void {
    const outdated = this.#outdated;
    // IPv4 names are identified by a number, so that no text is made.
    const isIpv4 = typeof address === "number";
    if (isIpv4 && outdated.has(address)) return;
    const name = reverseName(address);
    const isOurs =
      (isIpv4 ? this.#hasIpv4 : this.#hasIpv6) || this.#reverse.some((zone) => name.isAtOrBelow(zone));
    if (isOurs) outdated.add(name, isIpv4 ? address : undefined);
  }

  /** The answer to an alias within the cluster holds the addresses of its target. */
  #addAliases(): void {
    const store = this.#store;
    if (!store.services.hasAliases) return;
    const aliases = store.tryRead(() =>
      Array.from(store.services.aliases(), ({ name, namespace }) => serviceKey(namespace, name)),
    );
    if (aliases === undefined) this.#outdated.addAll();
    else for (const service of aliases) this.#addService(service);
  }
}

const IPV4_ROOT = Name.parse("in-addr.arpa.");
const IPV6_ROOT = Name.parse("ip6.arpa.");
