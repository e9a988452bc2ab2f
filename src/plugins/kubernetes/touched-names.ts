/**
 * A change in the cluster makes answers untrue that somebody may have kept: those of the cache in the same block. It is told the
 * names, so that exactly those are forgotten and a new pod's name is right at once.
 */
import type { Name } from "../../dns/name.ts";
import { isReverseZone } from "../../kubernetes/answers/cluster-zone.ts";
import { OutdatedNames } from "../../kubernetes/answers/outdated-names.ts";
import { reverseName } from "../../kubernetes/store/reverse-names.ts";
import type { ClusterStore } from "../../kubernetes/store/store.ts";
import type { StoreChange } from "../../kubernetes/store/store-change.ts";
import type { Clock } from "../../lib/clock.ts";

export class TouchedNames {
  readonly #store: ClusterStore;
  readonly #forward: readonly Name[];
  readonly #reverse: readonly Name[];
  readonly #outdated: OutdatedNames;

  constructor(options: {
    store: ClusterStore;
    zones: readonly Name[];
    clock: Clock;
    forget: (names: readonly Name[]) => void;
  }) {
    this.#store = options.store;
    this.#forward = options.zones.filter((zone) => !isReverseZone(zone));
    this.#reverse = options.zones.filter(isReverseZone);
    this.#outdated = new OutdatedNames({
      zones: [...this.#forward, ...this.#reverse],
      clock: options.clock,
      forget: options.forget,
      complete: () => this.#addAliases(),
    });
  }

  add(change: StoreChange): void {
    const outdated = this.#outdated;
    // As long as lists come in, everything changes: 150,000 names would be made for a cache that is still empty.
    if (change.everything || !this.#store.isSynced) {
      outdated.addAll();
      outdated.schedule();
      return;
    }
    for (const zone of this.#forward) {
      for (const key of change.services) outdated.addBelow(zone, `${key}.svc`);
      for (const namespace of change.namespaces) {
        outdated.addBelow(zone, `${namespace}.svc`);
        outdated.addBelow(zone, `${namespace}.pod`);
      }
      if (change.podAddresses.length > 0) outdated.addBelow(zone, "pod");
    }
    if (this.#reverse.length > 0) {
      for (const key of change.addresses) {
        const name = reverseName(key);
        // Names of IPv4 are known by a number, so that their text need not be made.
        const isOurs = this.#reverse.some((zone) => name.isAtOrBelow(zone));
        if (isOurs) outdated.add(name, typeof key === "number" ? key : undefined);
      }
    }
    outdated.schedule();
  }

  stop(): void {
    this.#outdated.stop();
  }

  /** The answer to an alias within the cluster holds the addresses of its target. */
  #addAliases(): void {
    const store = this.#store;
    if (!store.services.hasAliases) return;
    const aliases = store.tryRead(() =>
      Array.from(store.services.aliases(), ({ name, namespace }) => `${name}.${namespace}.svc`),
    );
    if (aliases === undefined) this.#outdated.addAll();
    else
      for (const labels of aliases) for (const zone of this.#forward) this.#outdated.addBelow(zone, labels);
  }
}
