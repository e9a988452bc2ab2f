/** Services between plugins of a server block that have no member in the contract. */

/** A service on offer: an entry of `PluginInstance.services`. */
export interface Offer<T> {
  readonly key: ServiceKey<T>;
  readonly service: T;
}

/**
 * The name of a service. It is on a floor below the plugins that offer and use it, so that neither imports the other:
 *
 * ```ts
 * export const CLUSTER: ServiceKey<Cluster> = new ServiceKey("cluster");
 * // the one plugin:            services: [CLUSTER.offer(cluster)]
 * // the other, from start on:  CLUSTER.among(site.block.plugins())
 * ```
 */
export class ServiceKey<T> {
  /** For messages. */
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  /** An entry for `PluginInstance.services`. */
  offer(service: T): Offer<T> {
    return { key: this, service };
  }

  /** The services of this key that the plugins offer, in chain order. */
  among(plugins: readonly OfferingPlugin[]): T[] {
    const services: T[] = [];
    for (const { instance } of plugins) {
      for (const offer of instance.services ?? []) {
        // Only `offer` above makes offers with this key.
        if (offer.key === this) services.push(offer.service as T);
      }
    }
    return services;
  }
}

/** A plugin, reduced to its services. */
export interface OfferingPlugin {
  readonly instance: { readonly services?: readonly Offer<unknown>[] | undefined };
}
