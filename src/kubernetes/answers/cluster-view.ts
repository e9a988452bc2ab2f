/** What of the store one directive shows: the namespaces that it is about, and how it names pods. */

import type { IndexedService } from "../store/services/indexed-service.ts";
import type { ClusterStore } from "../store/store.ts";
import type { ClusterName } from "./name-grammar.ts";

/**
 * - `disabled`: pods have no names.
 * - `insecure`: any address in a label is taken at its word.
 * - `verified`: a running pod must have the address.
 */
export const POD_MODES = ["disabled", "insecure", "verified"] as const;
export type PodMode = (typeof POD_MODES)[number];

export interface ClusterViewOptions {
  readonly store: ClusterStore;
  /** Seconds, 0 to 3600. */
  readonly ttl: number;
  readonly pods: PodMode;
  /** The option `namespaces`; undefined for all. */
  readonly namespaces?: ReadonlySet<string> | undefined;
  /** Whether the store holds selected namespaces only (`namespace_labels`). For explanations; default false. */
  readonly namespacesBySelector?: boolean;
  /** Likewise for services, endpoints and pods (`labels`). */
  readonly objectsBySelector?: boolean;
  /** A service with cluster addresses but without endpoints does not exist (`ignore empty_service`). */
  readonly ignoreEmptyServices: boolean;
  /** The addresses of this server, as text, loopback left out. */
  readonly ownAddresses: () => readonly string[];
  /** Present where the store holds what is imported from several clusters: the view of this one. For explanations. */
  readonly cluster?: ClusterView | undefined;
}

export class ClusterView {
  readonly store: ClusterStore;
  readonly ttl: number;
  readonly pods: PodMode;
  readonly ownAddresses: () => readonly string[];
  readonly namespacesBySelector: boolean;
  readonly objectsBySelector: boolean;
  readonly cluster: ClusterView | undefined;
  readonly #namespaces: ReadonlySet<string> | undefined;
  readonly #ignoresEmptyServices: boolean;

  constructor(options: ClusterViewOptions) {
    this.store = options.store;
    this.ttl = options.ttl;
    this.pods = options.pods;
    this.ownAddresses = options.ownAddresses;
    this.namespacesBySelector = options.namespacesBySelector ?? false;
    this.objectsBySelector = options.objectsBySelector ?? false;
    this.cluster = options.cluster;
    this.#namespaces = options.namespaces;
    // Without a watch on endpoints every service looks empty, and none is known to be.
    this.#ignoresEmptyServices = options.ignoreEmptyServices && options.store.kinds.has("endpoints");
  }

  /** Whether the option `namespaces` lets a namespace be shown, should it exist. */
  selects(name: string): boolean {
    return this.#namespaces === undefined || this.#namespaces.has(name);
  }

  /** Whether a namespace exists and is shown: any other is like one that does not exist. */
  hasNamespace(name: string): boolean {
    if (!this.selects(name)) return false;
    return this.store.services.hasNamespace(name);
  }

  /** The same for the namespace in a name. */
  hasNamespaceOf(name: ClusterName): boolean {
    if (this.#namespaces !== undefined && !this.#namespaces.has(name.namespace)) return false;
    return this.store.services.hasNamespaceLabel(name);
  }

  /** Whether the namespace of a service exists and is shown. */
  shows(entry: IndexedService): boolean {
    if (!entry.isInNamespace) return false;
    return this.#namespaces === undefined || this.selects(entry.namespaceName);
  }

  /** Whether a service with cluster addresses is to be taken for missing. */
  ignores(entry: IndexedService): boolean {
    return this.#ignoresEmptyServices && entry.endpoints.isEmpty;
  }
}
