/** A namespace and a service as callers of the index see them: views that are made when they are asked for. */
import { MAX_LABEL_OCTETS, type Name } from "../../../dns/name.ts";
import { NO_ENTRY, withRoom } from "../../../lib/collections/slab/growing-index.ts";
import { serviceKey } from "../../objects/names.ts";
import type { EndpointGroup, EndpointSet, Service, ServiceType } from "../../objects/objects.ts";
import type { EndpointTable } from "../endpoints/endpoint-table.ts";
import type { Slot } from "../tables/block-table.ts";
import type { EntryTable } from "../tables/entry-table.ts";
import type { NamespaceTable } from "../tables/namespace-table.ts";
import { writeTextLabel } from "../tables/short-text.ts";
import { ServiceEndpoints, visibleCount } from "./service-endpoints.ts";

/** What the views of one index look into. */
export interface EntryTables {
  readonly namespaces: NamespaceTable;
  readonly entries: EntryTable;
  readonly endpoints: EndpointTable;
  /** Endpoints that were asked for last. */
  readonly recent: RecentEndpoints;
}

/** The names of a service, for what outlives it. */
export interface NamedService {
  readonly name: string;
  readonly namespaceName: string;
  /** `service.namespace`. */
  readonly key: string;
}

/** Where the labels of a service and its namespace begin among the octets of a name, which are in lower case. */
export interface ServiceLabels {
  readonly octets: Uint8Array;
  readonly namespaceAt: number;
  readonly serviceAt: number;
}

/** What the cluster says of one namespace. Also stands for a namespace that only its objects name so far. To be read at once. */
export class NamespaceEntry {
  readonly slot: Slot;
  readonly #tables: EntryTables;
  #name: string | undefined;

  constructor(tables: EntryTables, slot: Slot) {
    this.#tables = tables;
    this.slot = slot;
  }

  get name(): string {
    this.#name ??= this.#tables.namespaces.nameOf(this.slot);
    return this.#name;
  }

  /** Whether the namespace itself has been seen. Without it nothing in it has a name. */
  get exists(): boolean {
    return this.#tables.namespaces.exists(this.slot);
  }

  /** How many services there are in it, with those that only slices name. */
  get size(): number {
    return this.#tables.namespaces.count(this.slot);
  }

  *services(): Generator<IndexedService> {
    const { namespaces, entries } = this.#tables;
    // A reader may be led round a circle while another thread writes: the bound ends it.
    let left = this.size;
    for (let slot = namespaces.firstService(this.slot); slot !== NO_ENTRY && left-- > 0; ) {
      const following = entries.next(slot);
      yield new IndexedService(this.#tables, slot);
      slot = following;
    }
  }
}

/**
 * What the cluster says of one service. Also stands for a service that only its slices name so far. To be read at once: it holds until the service
 * is deleted. Two that have the same slot are the same.
 */
export class IndexedService implements NamedService {
  readonly slot: Slot;
  readonly #tables: EntryTables;
  #name: string | undefined;
  #namespaceName: string | undefined;

  /** @param name that of the service, where it is known, and `namespaceName` likewise */
  constructor(tables: EntryTables, slot: Slot, name?: string, namespaceName?: string) {
    this.#tables = tables;
    this.slot = slot;
    this.#name = name;
    this.#namespaceName = namespaceName;
  }

  get name(): string {
    this.#name ??= this.#tables.entries.nameOf(this.slot);
    return this.#name;
  }

  /** The same as `namespace.name`, without an object. */
  get namespaceName(): string {
    this.#namespaceName ??= this.#tables.entries.namespaceNameOf(this.slot);
    return this.#namespaceName;
  }

  /**
   * `<name>.<namespace>.<suffix>`, without a text; undefined where they are no labels of ASCII, or too long.
   * @param label stands in front of them
   */
  nameBelow(suffix: Name, label?: string): Name | undefined {
    const from = label === undefined ? 0 : writeTextLabel(label, LABELS);
    const end = from < 0 ? from : this.#tables.entries.writeLabels(this.slot, LABELS, from);
    return end < 0 ? undefined : suffix.withLabels(LABELS, end);
  }

  get namespace(): NamespaceEntry {
    return new NamespaceEntry(this.#tables, this.#tables.entries.namespaceOf(this.slot));
  }

  /** The same as `namespace.exists`, without an object. */
  get isInNamespace(): boolean {
    const { namespaces, entries } = this.#tables;
    return namespaces.exists(entries.namespaceOf(this.slot));
  }

  get key(): string {
    return serviceKey(this.namespaceName, this.name);
  }

  /** Whether the service itself has been seen. */
  get hasService(): boolean {
    return this.#tables.entries.hasService(this.slot);
  }

  /** To be read at once: it holds until the service changes. Each call makes an object. */
  get service(): Service | undefined {
    return this.#tables.entries.service(this.slot, this);
  }

  /** The same as `service?.type`, without an object. */
  get type(): ServiceType | undefined {
    return this.#tables.entries.typeOf(this.slot);
  }

  /** How many endpoints of a group, counted from the first, DNS shows. Takes less than to ask {@link endpoints}. */
  visibleCount(group: EndpointGroup): number {
    return visibleCount(group, this.#tables.entries.publishes(this.slot));
  }

  /** Whether any slice names it. */
  get hasEndpointSets(): boolean {
    return this.#tables.entries.firstSet(this.slot) !== NO_ENTRY;
  }

  /** To be read at once: they hold until one of them changes. */
  get endpointSets(): readonly StoredSet[] {
    const { entries, endpoints } = this.#tables;
    return endpoints.chain(entries.firstSet(this.slot)).map((slot) => new StoredSet(this.#tables, slot));
  }

  /** To be read at once, likewise. */
  get endpoints(): ServiceEndpoints {
    return this.#tables.recent.of(this.#tables, this.slot);
  }

  /** Its endpoints as they are now, to be read later. */
  copyEndpoints(): () => ServiceEndpoints {
    const { entries, endpoints } = this.#tables;
    const publishes = entries.publishes(this.slot);
    const groups = endpoints.copyGroupsOf(entries.firstSet(this.slot));
    return () => new ServiceEndpoints(groups(), publishes);
  }

  /** Its names, to be read later. */
  copyNames(): NamedService {
    const { name, namespaceName, key } = this;
    return { name, namespaceName, key };
  }
}

/** Serves one name after the other. */
const LABELS = new Uint8Array(3 * (1 + MAX_LABEL_OCTETS));

/** A set that is there: to be read at once, as it holds until the set changes. */
export class StoredSet implements EndpointSet {
  readonly groups: readonly EndpointGroup[];
  readonly #tables: EntryTables;
  readonly #slot: Slot;

  constructor(tables: EntryTables, slot: Slot) {
    this.groups = tables.endpoints.groupsAt(slot);
    this.#tables = tables;
    this.#slot = slot;
  }

  get owner(): IndexedService {
    return new IndexedService(this.#tables, this.#tables.endpoints.ownerOf(this.#slot));
  }

  get namespace(): string {
    return this.owner.namespaceName;
  }

  get service(): string {
    return this.owner.name;
  }

  get name(): string {
    return this.#tables.endpoints.nameOf(this.#slot);
  }
}

/** Services that are asked for again and again need not have their endpoints gathered anew; those of all services would be many objects. */
const MOST_RECENT = 1_024;

/** Endpoints by the slots of their services, each with the version that it was made of. */
export class RecentEndpoints {
  /** Of each slot: where its endpoints are kept, if they still are. */
  #places: Uint16Array = new Uint16Array(0);
  readonly #slots = new Int32Array(MOST_RECENT).fill(NO_ENTRY);
  readonly #versions = new Int32Array(MOST_RECENT);
  readonly #endpoints: (ServiceEndpoints | undefined)[] = new Array<ServiceEndpoints | undefined>(
    MOST_RECENT,
  ).fill(undefined);
  /** The place that has been in use for longest. */
  #oldest = 0;

  of({ entries, endpoints }: EntryTables, slot: Slot): ServiceEndpoints {
    const version = entries.version(slot);
    const known = this.#places[slot] ?? 0;
    const isKnown = this.#slots[known] === slot;
    const kept = this.#endpoints[known];
    if (isKnown && kept !== undefined && this.#versions[known] === version) return kept;
    const made = new ServiceEndpoints(endpoints.groupsOf(entries.firstSet(slot)), entries.publishes(slot));
    const place = isKnown ? known : this.#take(slot);
    this.#versions[place] = version;
    this.#endpoints[place] = made;
    return made;
  }

  #take(slot: Slot): number {
    const place = this.#oldest;
    this.#oldest = (place + 1) % MOST_RECENT;
    this.#places = withRoom(this.#places, slot);
    this.#places[slot] = place;
    this.#slots[place] = slot;
    return place;
  }

  /** What was made of memory that another thread was writing to must not be kept. */
  clear(): void {
    this.#endpoints.fill(undefined);
  }
}
