/**
 * Finds the external names that a change in the cluster outdates, so that the cache of the same block drops their
 * answers.
 */
import type { Name } from "../../dns/name.ts";
import { OutdatedClusterNames } from "../../kubernetes/answers/outdated-names.ts";
import { hostName } from "../../kubernetes/external/external-addresses.ts";
import { nameServerAddresses } from "../../kubernetes/external/external-apex.ts";
import type { ExternalView } from "../../kubernetes/external/external-view.ts";
import type { Service } from "../../kubernetes/objects/objects.ts";
import { reverseName } from "../../kubernetes/store/tables/reverse-names.ts";
import type { StoreChange } from "../../kubernetes/store/tables/store-change.ts";
import type { Clock } from "../../plugin/index.ts";

export class TouchedExternalNames {
  readonly #view: ExternalView;
  readonly #outdated: OutdatedClusterNames;
  #nameServers: string;

  constructor(options: { view: ExternalView; clock: Clock; forget: (names: readonly Name[]) => void }) {
    this.#view = options.view;
    this.#outdated = new OutdatedClusterNames({
      zones: options.view.zones.map(({ name }) => name),
      clock: options.clock,
      forget: options.forget,
      complete: () => this.#addIndirect(),
    });
    this.#nameServers = this.#findNameServers() ?? "";
  }

  add(change: StoreChange): void {
    const { cluster, zones, headless } = this.#view;
    // While lists arrive, everything changes.
    if (change.everything || !cluster.store.isSynced) {
      this.#outdated.addAll();
      this.#outdated.schedule();
      return;
    }
    for (const zone of zones) {
      if (zone.isReverse) continue;
      for (const key of change.externalServices) this.#outdated.addBelow(zone.name, key);
      // Headless services answer with their endpoints.
      if (headless) for (const key of change.services) this.#outdated.addBelow(zone.name, key);
      for (const namespace of change.namespaces) this.#outdated.addBelow(zone.name, namespace);
    }
    for (const key of change.externalAddresses) {
      const name = reverseName(key);
      if (zones.some((zone) => zone.isReverse && name.isAtOrBelow(zone.name))) this.#outdated.add(name);
    }
    this.#outdated.schedule();
  }

  stop(): void {
    this.#outdated.stop();
  }

  /**
   * Names that depend on other objects: the addresses of this server, and load balancers whose host name is itself an
   * external name.
   */
  #addIndirect(): void {
    const { zones } = this.#view;
    const nameServers = this.#findNameServers();
    const named = this.#findNamed();
    if (nameServers === undefined || named === undefined) {
      this.#outdated.addAll();
      return;
    }
    if (nameServers !== this.#nameServers) {
      this.#nameServers = nameServers;
      // They are also beside the NS record of each zone, which cannot be dropped without the rest of the zone's.
      for (const zone of zones) this.#outdated.add(zone.nameServer);
    }
    for (const { externalAddresses, name, namespace } of named) {
      for (const text of externalAddresses) {
        const target = hostName(text);
        if (target === undefined || !zones.some((zone) => target.isAtOrBelow(zone.name))) continue;
        for (const zone of zones) this.#outdated.addBelow(zone.name, `${name}.${namespace}`);
      }
    }
  }

  /** `undefined` while the store is being changed. */
  #findNameServers(): string | undefined {
    return this.#view.cluster.store.tryRead(() => nameServerAddresses(this.#view).join());
  }

  #findNamed(): Pick<Service, "name" | "namespace" | "externalAddresses">[] | undefined {
    const { store } = this.#view.cluster;
    return store.tryRead(() =>
      Array.from(store.services.external.named(), ({ name, namespace, externalAddresses }) => ({
        name,
        namespace,
        externalAddresses,
      })),
    );
  }
}
