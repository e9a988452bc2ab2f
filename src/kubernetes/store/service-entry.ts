/** A namespace and a service as the index keeps them. */

import { NO_ENTRY } from "../../lib/slab/growing-index.ts";
import { serviceKey } from "../objects/names.ts";
import type { EndpointGroup, Namespace, Service } from "../objects/objects.ts";
import type { Slot } from "./block-table.ts";
import type { EndpointTable, StoredSet } from "./endpoint-table.ts";
import { ServiceEndpoints, visibleCount } from "./service-endpoints.ts";

/** What the entries of one index have in common. */
export interface EndpointSource {
  readonly table: EndpointTable<ServiceEntry>;
  /** Those whose endpoints were asked for last. */
  readonly recent: RecentEntries;
}

/** What the cluster says of one namespace. Also stands for a namespace that only its objects name so far. */
export class NamespaceEntry {
  readonly name: string;
  /** The namespace itself, once it has been seen. Without it nothing in it has a name. */
  namespace: Namespace | undefined;
  readonly services = new Map<string, ServiceEntry>();
  readonly source: EndpointSource;

  constructor(name: string, source: EndpointSource) {
    this.name = name;
    this.source = source;
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
  /** Where its endpoints begin in the table. */
  firstSet: Slot = NO_ENTRY;
  #service: Service | undefined;
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

  /** How many endpoints of a group, counted from the first, DNS shows. Takes less than to ask {@link endpoints}. */
  visibleCount(group: EndpointGroup): number {
    return visibleCount(group, this.#service?.publishNotReadyAddresses ?? false);
  }

  /** Whether any slice names it. */
  get hasEndpointSets(): boolean {
    return this.firstSet !== NO_ENTRY;
  }

  /** To be read at once: they hold until one of them changes. */
  get endpointSets(): readonly StoredSet<ServiceEntry>[] {
    return this.namespace.source.table.of(this);
  }

  /** To be read at once, likewise. */
  get endpoints(): ServiceEndpoints {
    if (this.#endpoints === undefined) {
      const { table, recent } = this.namespace.source;
      this.#endpoints = new ServiceEndpoints(this.#service, table.groupsOf(this));
      recent.note(this);
    }
    return this.#endpoints;
  }

  /** Forgets what was made of its sets: they have changed, or others are asked for. */
  dropEndpoints(): void {
    this.#endpoints = undefined;
  }

  /** Its endpoints as they are now, to be read later. */
  copyEndpoints(): () => ServiceEndpoints {
    const service = this.#service;
    const groups = this.namespace.source.table.copyGroupsOf(this);
    return () => new ServiceEndpoints(service, groups());
  }
}

/** Services that are asked for again and again need not have their endpoints gathered anew; those of all services would be many objects. */
const MOST_RECENT = 1_024;

export class RecentEntries {
  readonly #entries: (ServiceEntry | undefined)[] = new Array<ServiceEntry | undefined>(MOST_RECENT).fill(
    undefined,
  );
  #at = 0;

  /** Notes an entry, which has gathered its endpoints, and has the one that was noted longest ago drop them. */
  note(entry: ServiceEntry): void {
    const former = this.#entries[this.#at];
    if (former !== entry) former?.dropEndpoints();
    this.#entries[this.#at] = entry;
    this.#at = (this.#at + 1) % MOST_RECENT;
  }
}
