/** Services, their endpoints and their namespaces, found by name and by address. */

import { OctetArena } from "../../../lib/collections/octet-arena.ts";
import { ColumnMemory } from "../../../lib/collections/slab/column-memory.ts";
import { NO_ENTRY } from "../../../lib/collections/slab/growing-index.ts";
import { type AddressKey, addressKey, dashedAddress, parseDashedAddress } from "../../objects/addresses.ts";
import { equalExternally, equalServices } from "../../objects/equality.ts";
import type { EndpointSet, Identity, Namespace, Service } from "../../objects/objects.ts";
import { labelAt } from "../endpoints/endpoint-block.ts";
import { forEachAddress, recordEndpointDifference } from "../endpoints/endpoint-difference.ts";
import { copySet, EndpointTable } from "../endpoints/endpoint-table.ts";
import { type AddressPrefix, AddressPrefixes } from "../tables/address-prefixes.ts";
import { AddressSlots } from "../tables/address-slots.ts";
import type { Slot } from "../tables/block-table.ts";
import { EntryTable } from "../tables/entry-table.ts";
import type { LargeObjects } from "../tables/large-objects.ts";
import { NamespaceTable } from "../tables/namespace-table.ts";
import { copyService } from "../tables/service-block.ts";
import { SlotSet } from "../tables/slot-set.ts";
import type { ChangeRecorder } from "../tables/store-change.ts";
import type { TableListing } from "../tables/table-listing.ts";
import { entriesAt } from "./entries-at.ts";
import { ExternalIndex } from "./external-index.ts";
import {
  type EntryTables,
  IndexedService,
  NamespaceEntry,
  RecentEndpoints,
  type ServiceLabels,
  StoredSet,
} from "./indexed-service.ts";
import { addressStandsAt, type EndpointReference } from "./service-endpoints.ts";

/** Objects that no block has room for. */
export interface LargeTables {
  readonly services: LargeObjects<Service>;
  readonly endpoints: LargeObjects<EndpointSet>;
}

export class ServiceIndex {
  /** For look-ups only. */
  readonly external: ExternalIndex;
  /** All blocks: a small cluster has one chunk. */
  readonly #arena: OctetArena;
  readonly #namespaces: NamespaceTable;
  readonly #entries: EntryTable;
  readonly #sets: EndpointTable;
  readonly #tables: EntryTables;
  /** Services of type `externalName`. */
  readonly #aliases: SlotSet;
  readonly #byClusterAddress: AddressSlots;
  /** Of cluster addresses and endpoints. */
  readonly #prefixes: AddressPrefixes;
  readonly #memory: ColumnMemory;

  /** @param memory where all of it lies. Another thread may read it there, or write to it */
  constructor(memory: ColumnMemory = new ColumnMemory()) {
    this.#memory = memory;
    this.#arena = new OctetArena(memory);
    this.#namespaces = new NamespaceTable(memory, this.#arena);
    this.#entries = new EntryTable(memory, this.#arena, this.#namespaces);
    this.#prefixes = new AddressPrefixes(memory);
    this.#sets = new EndpointTable(memory, this.#arena, this.#entries, this.#prefixes);
    this.#tables = {
      namespaces: this.#namespaces,
      entries: this.#entries,
      endpoints: this.#sets,
      recent: new RecentEndpoints(),
    };
    this.#aliases = new SlotSet(memory);
    this.#byClusterAddress = new AddressSlots(memory, this.#prefixes);
    this.external = new ExternalIndex(memory, this.#tables);
  }

  /** What does not lie in the memory. */
  get large(): LargeTables {
    return { services: this.#entries.large, endpoints: this.#sets.large };
  }

  /** Drops what was made of the memory in vain, or of another memory. */
  forget(): void {
    this.#tables.recent.clear();
  }

  namespace(name: string): NamespaceEntry | undefined {
    const slot = this.#namespaces.find(name);
    return slot === NO_ENTRY ? undefined : new NamespaceEntry(this.#tables, slot);
  }

  /** Whether a namespace has been seen. */
  hasNamespace(name: string): boolean {
    const slot = this.#namespaces.find(name);
    return slot !== NO_ENTRY && this.#namespaces.exists(slot);
  }

  /** The same for a label of a name, without a text. */
  hasNamespaceLabel({ octets, namespaceAt }: ServiceLabels): boolean {
    const slot = this.#namespaces.findLabel(octets, namespaceAt);
    return slot !== NO_ENTRY && this.#namespaces.exists(slot);
  }

  /** The entry under a key `service.namespace`. It may lack the Service itself, or its namespace. */
  entry(key: string): IndexedService | undefined {
    // A label has no dot.
    const end = key.indexOf(".");
    return this.find(key.slice(end + 1), key.slice(0, end));
  }

  /** The same without a key. */
  find(namespace: string, name: string): IndexedService | undefined {
    const slot = this.#entries.find(this.#namespaces.find(namespace), name);
    return slot === NO_ENTRY ? undefined : new IndexedService(this.#tables, slot, name, namespace);
  }

  /** The same for labels of a name, without a text. */
  findLabels({ octets, namespaceAt, serviceAt }: ServiceLabels): IndexedService | undefined {
    const slot = this.#entries.findLabel(this.#namespaces.findLabel(octets, namespaceAt), octets, serviceAt);
    return slot === NO_ENTRY ? undefined : new IndexedService(this.#tables, slot);
  }

  /** Each is to be read at once. They may come and go meanwhile. */
  *entries(): Generator<IndexedService> {
    for (const slot of this.#entries.slots()) yield new IndexedService(this.#tables, slot);
  }

  /** The services that have a cluster address: one, unless two were written by hand. */
  servicesAt(key: AddressKey): readonly IndexedService[] {
    return entriesAt(this.#tables, this.#byClusterAddress, key, clusterKeys);
  }

  /** Whether a cluster address or an endpoint begins so, ready or not. */
  hasAddressBelow(prefix: AddressPrefix): boolean {
    return this.#prefixes.has(prefix);
  }

  /** The endpoint sets that hold an address, ready or not. To be read at once. */
  endpointSetsAt(key: AddressKey): readonly StoredSet[] {
    return this.#sets.at(key).map((slot) => new StoredSet(this.#tables, slot));
  }

  /**
   * The published endpoints of a service that bear a label: a hostname, or the address with dashes for an endpoint
   * that has no other name (docs/spec/kubernetes-dns.md#endpoint-names). The latter are found by their address, so that their names need not be kept.
   */
  endpointsNamed(entry: IndexedService, label: string): readonly EndpointReference[] {
    const labelled = entry.endpoints.labelled(label);
    const octets = parseDashedAddress(label);
    if (octets === undefined || dashedAddress(octets, 0, octets.length === 4 ? 4 : 16) !== label)
      return labelled;
    const references = [...labelled];
    for (const set of this.endpointSetsAt(addressKey(octets))) {
      if (set.owner.slot !== entry.slot) continue;
      for (const group of set.groups) {
        const visible = group.addressLength === octets.length ? entry.visibleCount(group) : 0;
        for (let index = 0; index < visible; index++) {
          if (addressStandsAt(group, index, octets) && labelAt(group, index) === "")
            references.push({ group, index });
        }
      }
    }
    return references;
  }

  /** Octets that all of it takes; what another thread writes is counted there. */
  get octets(): number {
    if (this.#memory.isReader) return 0;
    const tables = this.#namespaces.octets + this.#entries.octets + this.#sets.octets;
    return (
      tables +
      this.#arena.reservedOctets +
      this.#byClusterAddress.octets +
      this.#prefixes.octets +
      this.#aliases.octets +
      this.external.octets
    );
  }

  /** How many services there are. What another thread writes is counted there, here as below. */
  get serviceCount(): number {
    return this.#entries.serviceCount;
  }

  /** Whether any service or endpoint has an address of IPv4. */
  get hasIpv4(): boolean {
    return this.#byClusterAddress.ipv4Size + this.#sets.ipv4AddressCount > 0;
  }

  get hasIpv6(): boolean {
    const { size, ipv4Size } = this.#byClusterAddress;
    return size > ipv4Size || this.#sets.addressCount > this.#sets.ipv4AddressCount;
  }

  /** Addresses of endpoints, each as often as sets have it. */
  get endpointAddressCount(): number {
    return this.#sets.addressCount;
  }

  /** @returns whether it says something new */
  putNamespace({ name }: Namespace, change: ChangeRecorder): boolean {
    if (name.length > MAX_NAME_LENGTH || this.hasNamespace(name)) return false;
    const slot = this.#memory.write(() => {
      const place = this.#namespaceSlot(name);
      this.#namespaces.setExists(place, true);
      return place;
    });
    this.#namespaceChanged(slot, change);
    return true;
  }

  deleteNamespace(name: string, change: ChangeRecorder): void {
    const slot = this.#namespaces.find(name);
    if (slot === NO_ENTRY || !this.#namespaces.exists(slot)) return;
    this.#memory.write(() => this.#namespaces.setExists(slot, false));
    this.#namespaceChanged(slot, change);
    this.#memory.write(() => this.#dropUnused(slot));
  }

  *existingNamespaces(): Generator<Namespace> {
    for (const slot of this.#namespaces.existing())
      yield { namespace: "", name: this.#namespaces.nameOf(slot) };
  }

  /** Begins a listing of namespaces. */
  listNamespaces(): TableListing {
    return this.#namespaces.listing();
  }

  /** @returns whether it says something new */
  putService(service: Service, change: ChangeRecorder): boolean {
    const { namespace, name } = service;
    // No API hands out such names.
    if (name.length > MAX_NAME_LENGTH || namespace.length > MAX_NAME_LENGTH) return false;
    const old = this.find(namespace, name)?.service;
    const sameInside = old !== undefined && equalServices(old, service);
    const sameOutside = old !== undefined && equalExternally(old, service);
    if (old !== undefined && sameInside && sameOutside) return false;
    this.#memory.write(() => this.#replaceService(old, service, change, sameInside, sameOutside));
    return true;
  }

  #replaceService(
    old: Service | undefined,
    service: Service,
    change: ChangeRecorder,
    sameInside: boolean,
    sameOutside: boolean,
  ): void {
    const entry = this.#entry(service.namespace, service.name);
    if (service.type === "externalName") this.#aliases.add(entry.slot);
    else this.#aliases.delete(entry.slot);
    if (!sameInside) {
      this.#moveClusterAddresses(entry, old, service, change);
      const published = old?.publishNotReadyAddresses;
      // The endpoints of a service that has become an alias have no names.
      if (published !== service.publishNotReadyAddresses || old?.type !== service.type) {
        this.#touchEndpointAddresses(entry, change);
      }
      change.service(entry.key);
    }
    if (!sameOutside && (service.externalAddresses.length > 0 || (old?.externalAddresses.length ?? 0) > 0)) {
      this.external.replace(entry, old, service, change);
    }
    // At the end: what is known of the old one is read where it stood.
    this.#entries.put(entry.slot, service);
  }

  deleteService({ namespace, name }: Identity, change: ChangeRecorder): void {
    const entry = this.find(namespace, name);
    const old = entry?.service;
    if (entry === undefined || old === undefined) return;
    this.#memory.write(() => {
      this.#moveClusterAddresses(entry, old, undefined, change);
      this.#touchEndpointAddresses(entry, change);
      this.#aliases.delete(entry.slot);
      change.service(entry.key);
      if (old.externalAddresses.length > 0) this.external.replace(entry, old, undefined, change);
      this.#entries.put(entry.slot, undefined);
      this.#dropUnused(entry.namespace.slot, entry.slot);
    });
  }

  /** Whether {@link aliases} names any. */
  get hasAliases(): boolean {
    return !this.#aliases.isEmpty;
  }

  /** The services that are other names for something. */
  *aliases(): Generator<Service> {
    for (const slot of this.#aliases.values()) {
      const { service } = new IndexedService(this.#tables, slot);
      if (service !== undefined) yield service;
    }
  }

  /** All services, as objects of their own. They may come and go meanwhile. */
  *services(): Generator<Service> {
    for (const { service } of this.entries()) if (service !== undefined) yield copyService(service);
  }

  /** Begins a listing of services. */
  listServices(): TableListing {
    return this.#entries.listing(({ namespace, name }) =>
      this.#entries.find(this.#namespaces.find(namespace), name),
    );
  }

  /** @returns whether it says something new */
  putEndpoints(set: EndpointSet, change: ChangeRecorder): boolean {
    const { namespace, service, name } = set;
    // No API hands out such names.
    if (Math.max(name.length, service.length, namespace.length) > MAX_NAME_LENGTH)
      return this.deleteEndpoints(set, change);
    const sets = this.#sets;
    const old = this.#findSet(set);
    const isKnown = old !== NO_ENTRY;
    const owner = this.find(namespace, service)?.slot;
    const isMoved = isKnown && sets.ownerOf(old) !== owner;
    if (isKnown && !isMoved && sets.says(old, set)) return false;
    if (change.listening)
      recordEndpointDifference(isKnown ? new StoredSet(this.#tables, old) : undefined, set, change);
    this.#memory.write(() => {
      const entry = this.#entry(namespace, service);
      if (isMoved) this.#detach(old, change);
      if (!isKnown || isMoved) sets.add(entry.slot, set);
      else sets.replace(old, set);
      change.service(entry.key);
    });
    return true;
  }

  /** @returns whether it was there */
  deleteEndpoints(identity: Identity, change: ChangeRecorder): boolean {
    const old = this.#findSet(identity);
    if (old === NO_ENTRY) return false;
    if (change.listening) recordEndpointDifference(new StoredSet(this.#tables, old), undefined, change);
    this.#memory.write(() => this.#detach(old, change));
    return true;
  }

  /** All endpoint sets, as objects of their own. They may come and go meanwhile. */
  *endpointSets(): Generator<EndpointSet> {
    for (const slot of this.#sets.slots()) yield copySet(new StoredSet(this.#tables, slot));
  }

  /** Begins a listing of endpoint sets. */
  listEndpoints(): TableListing {
    return this.#sets.listing((identity) => this.#findSet(identity));
  }

  #findSet({ namespace, name }: Identity): Slot {
    const slot = this.#namespaces.find(namespace);
    return slot === NO_ENTRY ? NO_ENTRY : this.#sets.find(slot, name);
  }

  #detach(set: Slot, change: ChangeRecorder): void {
    const entry = new IndexedService(this.#tables, this.#sets.ownerOf(set));
    this.#sets.delete(set);
    change.service(entry.key);
    this.#dropUnused(entry.namespace.slot, entry.slot);
  }

  #moveClusterAddresses(
    entry: IndexedService,
    old: Service | undefined,
    service: Service | undefined,
    change: ChangeRecorder,
  ): void {
    const before = clusterKeys(old);
    const after = clusterKeys(service);
    for (const key of before) {
      if (after.includes(key)) continue;
      this.#byClusterAddress.delete(key, entry.slot);
      change.address(key);
    }
    for (const key of after) {
      if (before.includes(key)) continue;
      this.#byClusterAddress.add(key, entry.slot);
      change.address(key);
    }
  }

  #touchEndpointAddresses(entry: IndexedService, change: ChangeRecorder): void {
    if (!change.listening) return;
    for (const set of entry.endpointSets) forEachAddress(set, (key) => change.address(key));
  }

  #namespaceChanged(slot: Slot, change: ChangeRecorder): void {
    const namespace = new NamespaceEntry(this.#tables, slot);
    change.namespace(namespace.name);
    for (const entry of namespace.services()) {
      this.external.touch(entry, change);
      if (!change.listening) continue;
      for (const octets of entry.service?.clusterAddresses ?? []) change.address(addressKey(octets));
      this.#touchEndpointAddresses(entry, change);
    }
  }

  #namespaceSlot(name: string): Slot {
    const slot = this.#namespaces.find(name);
    return slot === NO_ENTRY ? this.#namespaces.add(name) : slot;
  }

  #entry(namespaceName: string, name: string): IndexedService {
    const namespace = this.#namespaceSlot(namespaceName);
    const known = this.#entries.find(namespace, name);
    const slot = known === NO_ENTRY ? this.#entries.add(namespace, name) : known;
    return new IndexedService(this.#tables, slot, name, namespaceName);
  }

  #dropUnused(namespace: Slot, entry?: Slot): void {
    const entries = this.#entries;
    if (entry !== undefined && !entries.hasService(entry) && entries.firstSet(entry) === NO_ENTRY)
      entries.delete(entry);
    const namespaces = this.#namespaces;
    if (!namespaces.exists(namespace) && namespaces.count(namespace) === 0) namespaces.delete(namespace);
  }
}

/** Each cluster address of a service once. */
function clusterKeys(service: Service | undefined): readonly AddressKey[] {
  const keys: AddressKey[] = [];
  if (service === undefined) return keys;
  for (const octets of service.clusterAddresses) {
    const key = addressKey(octets);
    if (!keys.includes(key)) keys.push(key);
  }
  return keys;
}

/** Of any object. */
const MAX_NAME_LENGTH = 253;
