/** A namespace and a service as the index keeps them. */

import { serviceKey } from "../objects/names.ts";
import type { EndpointSet, Namespace, Service } from "../objects/objects.ts";
import { ServiceEndpoints } from "./service-endpoints.ts";

/** What the cluster says of one namespace. Also stands for a namespace that only its objects name so far. */
export class NamespaceEntry {
  readonly name: string;
  /** The namespace itself, once it has been seen. Without it nothing in it has a name. */
  namespace: Namespace | undefined;
  readonly services = new Map<string, ServiceEntry>();

  constructor(name: string) {
    this.name = name;
  }

  /** Whether the namespace itself has been seen. */
  get exists(): boolean {
    return this.namespace !== undefined;
  }
}

/** What the cluster says of one service. Also stands for a service that only its slices name so far. */
export class ServiceEntry {
  /** `service.namespace`. */
  readonly key: string;
  readonly name: string;
  readonly namespace: NamespaceEntry;
  #service: Service | undefined;
  #endpointSets: readonly EndpointSet[] = [];
  #endpoints: ServiceEndpoints | undefined;

  constructor(namespace: NamespaceEntry, name: string) {
    this.key = serviceKey(namespace.name, name);
    this.namespace = namespace;
    this.name = name;
  }

  get service(): Service | undefined {
    return this.#service;
  }

  set service(service: Service | undefined) {
    this.#service = service;
    this.#endpoints = undefined;
  }

  get endpointSets(): readonly EndpointSet[] {
    return this.#endpointSets;
  }

  set endpointSets(sets: readonly EndpointSet[]) {
    this.#endpointSets = sets;
    this.#endpoints = undefined;
  }

  get endpoints(): ServiceEndpoints {
    this.#endpoints ??= new ServiceEndpoints(this.#service, this.#endpointSets);
    return this.#endpoints;
  }
}
