/** A namespace and a service as the index keeps them. */

import { NO_ENTRY } from "../../lib/slab/growing-index.ts";
import { serviceKey } from "../objects/names.ts";
import type { EndpointGroup, Namespace, Service, ServiceType } from "../objects/objects.ts";
import type { Slot } from "./block-table.ts";
import type { EndpointTable, StoredSet } from "./endpoint-table.ts";
import { ServiceEndpoints, visibleCount } from "./service-endpoints.ts";
import type { ServiceTable } from "./service-table.ts";

/** What the entries of one index have in common. */
export interface EntryTables {
  readonly services: ServiceTable<ServiceEntry>;
  readonly endpoints: EndpointTable<ServiceEntry>;
  /** Those whose endpoints were asked for last. */
  readonly recent: RecentEntries;
}

/** What the cluster says of one namespace. Also stands for a namespace that only its objects name so far. */
export class NamespaceEntry {
  readonly name: string;
  /** The namespace itself, once it has been seen. Without it nothing in it has a name. */
  namespace: Namespace | undefined;
  readonly services = new Map<string, ServiceEntry>();
  readonly tables: EntryTables;

  constructor(name: string, tables: EntryTables) {
    this.name = name;
    this.tables = tables;
  }

  /** Whether the namespace itself has been seen. */
  get exists(): boolean {
    return this.namespace !== undefined;
  }
}

/** What the cluster says of one service. Also stands for a service that only its slices name so far. */
export class ServiceEntry {
  readonly name: string;
  readonly namespace: NamespaceEntry;
  /** Where its service stands, and where its endpoint sets begin, in the tables. */
  serviceSlot: Slot = NO_ENTRY;
  firstSet: Slot = NO_ENTRY;
  /** What of the service is looked at most. */
  #type: ServiceType | undefined;
  #publishNotReadyAddresses = false;
  #endpoints: ServiceEndpoints | undefined;

  constructor(namespace: NamespaceEntry, name: string) {
    this.namespace = namespace;
    this.name = name;
  }

  /** `service.namespace`. */
  get key(): string {
    return serviceKey(this.namespace.name, this.name);
  }

  /** Whether the service itself has been seen. */
  get hasService(): boolean {
    return this.serviceSlot !== NO_ENTRY;
  }

  /** To be read at once: it holds until the service changes. Each call makes an object. */
  get service(): Service | undefined {
    return this.namespace.tables.services.get(this);
  }

  /** The same as `service?.type`, without an object. */
  get type(): ServiceType | undefined {
    return this.#type;
  }

  /** Gives it a service in the place of its former one, which holds no longer; `undefined` for none. */
  put(service: Service | undefined): void {
    const { services } = this.namespace.tables;
    if (service === undefined) services.delete(this);
    else services.put(this, service);
    this.#type = service?.type;
    this.#publishNotReadyAddresses = service?.publishNotReadyAddresses ?? false;
    this.#endpoints = undefined;
  }

  /** How many endpoints of a group, counted from the first, DNS shows. Takes less than to ask {@link endpoints}. */
  visibleCount(group: EndpointGroup): number {
    return visibleCount(group, this.#publishNotReadyAddresses);
  }

  /** Whether any slice names it. */
  get hasEndpointSets(): boolean {
    return this.firstSet !== NO_ENTRY;
  }

  /** To be read at once: they hold until one of them changes. */
  get endpointSets(): readonly StoredSet<ServiceEntry>[] {
    return this.namespace.tables.endpoints.of(this);
  }

  /** To be read at once, likewise. */
  get endpoints(): ServiceEndpoints {
    if (this.#endpoints === undefined) {
      const { endpoints, recent } = this.namespace.tables;
      recent.note(this);
      this.#endpoints = new ServiceEndpoints(endpoints.groupsOf(this), this.#publishNotReadyAddresses);
    }
    return this.#endpoints;
  }

  /** Forgets what was made of its sets: they have changed, or others are asked for. */
  dropEndpoints(): void {
    this.#endpoints = undefined;
  }

  /** Its endpoints as they are now, to be read later. */
  copyEndpoints(): () => ServiceEndpoints {
    const publishes = this.#publishNotReadyAddresses;
    const groups = this.namespace.tables.endpoints.copyGroupsOf(this);
    return () => new ServiceEndpoints(groups(), publishes);
  }
}

/** Services that are asked for again and again need not have their endpoints gathered anew; those of all services would be many objects. */
const MOST_RECENT = 1_024;

export class RecentEntries {
  readonly #entries: (ServiceEntry | undefined)[] = new Array<ServiceEntry | undefined>(MOST_RECENT).fill(
    undefined,
  );
  #at = 0;

  /** Notes an entry that is about to keep its endpoints, and has the one that was noted longest ago drop them. */
  note(entry: ServiceEntry): void {
    const former = this.#entries[this.#at];
    if (former !== entry) former?.dropEndpoints();
    this.#entries[this.#at] = entry;
    this.#at = (this.#at + 1) % MOST_RECENT;
  }
}
