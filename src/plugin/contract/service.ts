/** What a plugin does for others of its server block, where the contract has no word of its own for it. */

/** A service on offer: an entry of `PluginInstance.services`. */
export interface Offer<T> {
  readonly key: ServiceKey<T>;
  readonly service: T;
}

/**
 * The name of a service. It stands on a floor below both who offers it and who uses it, so that neither knows the other:
 *
 *     export const CLUSTER: ServiceKey<Cluster> = new ServiceKey("cluster");
 *     // the one plugin:            services: [CLUSTER.offer(cluster)]
 *     // the other, from start on:  CLUSTER.among(site.block.plugins())
 */
export class ServiceKey<T> {
  /** For messages. */
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  offer(service: T): Offer<T> {
    return { key: this, service };
  }

  /** The services of this key that the plugins offer, in chain order. */
  among(plugins: readonly OfferingPlugin[]): T[] {
    const services: T[] = [];
    for (const { instance } of plugins) {
      for (const offer of instance.services ?? []) {
        // Only `offer` above makes an offer with this key.
        if (offer.key === this) services.push(offer.service as T);
      }
    }
    return services;
  }
}

/** A plugin as far as its services go. */
export interface OfferingPlugin {
  readonly instance: { readonly services?: readonly Offer<unknown>[] | undefined };
}
