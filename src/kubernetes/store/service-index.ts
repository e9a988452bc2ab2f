/** Services, their endpoints and their namespaces, found by name and by address (kubernetes-dns-spec part 18). */

import {
  type AddressKey,
  addressKey,
  dashedAddress,
  equalOctets,
  parseDashedAddress,
} from "../objects/addresses.ts";
import { equalExternally, equalServices } from "../objects/equality.ts";
import type { EndpointSet, Identity, Namespace, Service } from "../objects/objects.ts";
import { AddressIndex } from "./address-index.ts";
import type { Slot } from "./block-table.ts";
import { labelAt } from "./endpoint-block.ts";
import { EndpointTable, type StoredSet } from "./endpoint-table.ts";
import { ExternalIndex } from "./external-index.ts";
import { addressStandsAt, type EndpointReference } from "./service-endpoints.ts";
import { NamespaceEntry, RecentEntries, ServiceEntry } from "./service-entry.ts";
import { ServiceTable } from "./service-table.ts";
import type { ChangeRecorder } from "./store-change.ts";
import type { TableListing } from "./table-listing.ts";

export class ServiceIndex {
  /** For look-ups only. */
  readonly external: ExternalIndex = new ExternalIndex();
  readonly #namespaces = new Map<string, NamespaceEntry>();
  readonly #sets = new EndpointTable<ServiceEntry>();
  readonly #services = new ServiceTable<ServiceEntry>();
  readonly #tables = { services: this.#services, endpoints: this.#sets, recent: new RecentEntries() };
  /** Services of type `externalName`. */
  readonly #aliases = new Set<ServiceEntry>();
  readonly #byClusterAddress = new AddressIndex<ServiceEntry>();

  namespace(name: string): NamespaceEntry | undefined {
    return this.#namespaces.get(name);
  }

  /** The entry under a key `service.namespace`. It may lack the Service itself, or its namespace. */
  entry(key: string): ServiceEntry | undefined {
    // A label has no dot.
    const end = key.indexOf(".");
    return this.find(key.slice(end + 1), key.slice(0, end));
  }

  /** The same without a key. */
  find(namespace: string, name: string): ServiceEntry | undefined {
    return this.#namespaces.get(namespace)?.services.get(name);
  }

  *entries(): Generator<ServiceEntry> {
    for (const { services } of this.#namespaces.values()) yield* services.values();
  }

  /** The services that have a cluster address: one, unless somebody wrote two by hand. */
  servicesAt(key: AddressKey): readonly ServiceEntry[] {
    return this.#byClusterAddress.get(key);
  }

  /** The endpoint sets that hold an address, ready or not. To be read at once. */
  endpointSetsAt(key: AddressKey): readonly StoredSet<ServiceEntry>[] {
    return this.#sets.at(key);
  }

  /**
   * The published endpoints of a service that bear a label: a hostname, or the address with dashes for an endpoint
   * that has no other name (rule 21). The latter are found by their address, so that nobody needs to keep their names.
   */
  endpointsNamed(entry: ServiceEntry, label: string): readonly EndpointReference[] {
    const labelled = entry.endpoints.labelled(label);
    const octets = parseDashedAddress(label);
    if (octets === undefined || dashedAddress(octets, 0, octets.length === 4 ? 4 : 16) !== label)
      return labelled;
    const references = [...labelled];
    for (const set of this.endpointSetsAt(addressKey(octets))) {
      if (set.owner !== entry) continue;
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

  /** Octets of the addresses of services and endpoints and of what finds them. */
  get octets(): number {
    return this.#byClusterAddress.octets + this.#services.octets + this.#sets.octets;
  }

  /** Addresses of endpoints, each as often as sets have it. */
  get endpointAddressCount(): number {
    return this.#sets.addressCount;
  }

  /** Returns the object that is kept: the old one if the new one says nothing new. */
  putNamespace(namespace: Namespace, change: ChangeRecorder): Namespace {
    const entry = this.#namespaceEntry(namespace.name);
    if (entry.namespace !== undefined) return entry.namespace;
    entry.namespace = namespace;
    this.#namespaceChanged(entry, change);
    return namespace;
  }

  deleteNamespace(name: string, change: ChangeRecorder): void {
    const entry = this.#namespaces.get(name);
    if (entry === undefined || !entry.exists) return;
    entry.namespace = undefined;
    this.#namespaceChanged(entry, change);
    this.#dropUnused(entry);
  }

  *existingNamespaces(): Generator<Namespace> {
    for (const { namespace } of this.#namespaces.values()) if (namespace !== undefined) yield namespace;
  }

  /** @returns whether it says something new */
  putService(service: Service, change: ChangeRecorder): boolean {
    const entry = this.#entry(service.namespace, service.name);
    const old = entry.service;
    const sameInside = old !== undefined && equalServices(old, service);
    const sameOutside = old !== undefined && equalExternally(old, service);
    if (old !== undefined && sameInside && sameOutside) return false;

    if (service.type === "externalName") this.#aliases.add(entry);
    else this.#aliases.delete(entry);
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
    entry.put(service);
    return true;
  }

  deleteService({ namespace, name }: Identity, change: ChangeRecorder): void {
    const entry = this.find(namespace, name);
    const old = entry?.service;
    if (entry === undefined || old === undefined) return;
    this.#moveClusterAddresses(entry, old, undefined, change);
    this.#touchEndpointAddresses(entry, change);
    this.#aliases.delete(entry);
    change.service(entry.key);
    if (old.externalAddresses.length > 0) this.external.replace(entry, old, undefined, change);
    entry.put(undefined);
    this.#dropUnused(entry.namespace, entry);
  }

  /** The services that are other names for something. */
  *aliases(): Generator<Service> {
    for (const { service } of this.#aliases) if (service !== undefined) yield service;
  }

  /** All services, as objects of their own. */
  services(): Generator<Service> {
    return this.#services.copies();
  }

  /** Begins a listing of services. */
  listServices(): TableListing {
    return this.#services.listing(({ namespace, name }) => this.find(namespace, name));
  }

  /** @returns whether it says something new */
  putEndpoints(set: EndpointSet, change: ChangeRecorder): boolean {
    // No API hands out such a name.
    if (set.name.length > MAX_NAME_LENGTH) return this.deleteEndpoints(set, change);
    const sets = this.#sets;
    const entry = this.#entry(set.namespace, set.service);
    const old = sets.find(set);
    const isMoved = old !== undefined && sets.ownerOf(old) !== entry;
    if (old !== undefined && !isMoved && sets.says(old, set)) return false;
    if (change.listening)
      recordEndpointDifference(old === undefined ? undefined : sets.get(old), set, change);
    if (old !== undefined && isMoved) this.#detach(old, change);
    if (old === undefined || isMoved) sets.add(entry, set);
    else sets.replace(old, set);
    entry.dropEndpoints();
    change.service(entry.key);
    return true;
  }

  /** @returns whether it was there */
  deleteEndpoints(identity: Identity, change: ChangeRecorder): boolean {
    const old = this.#sets.find(identity);
    if (old === undefined) return false;
    if (change.listening) recordEndpointDifference(this.#sets.get(old), undefined, change);
    this.#detach(old, change);
    return true;
  }

  /** All endpoint sets, as objects of their own. */
  endpointSets(): Generator<EndpointSet> {
    return this.#sets.copies();
  }

  /** Begins a listing of endpoint sets. */
  listEndpoints(): TableListing {
    return this.#sets.listing();
  }

  #detach(set: Slot, change: ChangeRecorder): void {
    const entry = this.#sets.ownerOf(set);
    this.#sets.delete(set);
    if (entry === undefined) return;
    entry.dropEndpoints();
    change.service(entry.key);
    this.#dropUnused(entry.namespace, entry);
  }

  #moveClusterAddresses(
    entry: ServiceEntry,
    old: Service | undefined,
    service: Service | undefined,
    change: ChangeRecorder,
  ): void {
    const before = old?.clusterAddresses ?? [];
    const after = service?.clusterAddresses ?? [];
    for (const octets of before) {
      if (after.some((other) => equalOctets(octets, other))) continue;
      this.#byClusterAddress.delete(addressKey(octets), entry);
      change.address(addressKey(octets));
    }
    for (const octets of after) {
      if (before.some((other) => equalOctets(octets, other))) continue;
      this.#byClusterAddress.add(addressKey(octets), entry);
      change.address(addressKey(octets));
    }
  }

  #touchEndpointAddresses(entry: ServiceEntry, change: ChangeRecorder): void {
    if (!change.listening) return;
    for (const set of entry.endpointSets) forEachAddress(set, (key) => change.address(key));
  }

  #namespaceChanged(entry: NamespaceEntry, change: ChangeRecorder): void {
    change.namespace(entry.name);
    for (const serviceEntry of entry.services.values()) this.external.touch(serviceEntry, change);
    if (!change.listening) return;
    for (const serviceEntry of entry.services.values()) {
      for (const octets of serviceEntry.service?.clusterAddresses ?? []) change.address(addressKey(octets));
      this.#touchEndpointAddresses(serviceEntry, change);
    }
  }

  #namespaceEntry(name: string): NamespaceEntry {
    let entry = this.#namespaces.get(name);
    if (entry === undefined) {
      entry = new NamespaceEntry(name, this.#tables);
      this.#namespaces.set(name, entry);
    }
    return entry;
  }

  #entry(namespaceName: string, name: string): ServiceEntry {
    const namespace = this.#namespaceEntry(namespaceName);
    let entry = namespace.services.get(name);
    if (entry === undefined) {
      entry = new ServiceEntry(namespace, name);
      namespace.services.set(name, entry);
    }
    return entry;
  }

  #dropUnused(namespace: NamespaceEntry, entry?: ServiceEntry): void {
    if (entry !== undefined && !entry.hasService && !entry.hasEndpointSets) {
      namespace.services.delete(entry.name);
    }
    if (!namespace.exists && namespace.services.size === 0) this.#namespaces.delete(namespace.name);
  }
}

/** Of an endpoint set. */
const MAX_NAME_LENGTH = 253;

function forEachAddress(set: Pick<EndpointSet, "groups">, callback: (key: AddressKey) => void): void {
  for (const { addresses, addressLength } of set.groups) {
    for (let at = 0; at < addresses.length; at += addressLength)
      callback(addressKey(addresses, at, addressLength));
  }
}

/** Names the addresses that are in one of two states of a set only, or ready in one only, or named otherwise. */
function recordEndpointDifference(
  old: EndpointSet | undefined,
  set: EndpointSet | undefined,
  change: ChangeRecorder,
): void {
  if (old === undefined || set === undefined || old.service !== set.service) {
    for (const one of [old, set]) if (one !== undefined) forEachAddress(one, (key) => change.address(key));
    return;
  }
  const before = describeAddresses(old);
  const after = describeAddresses(set);
  for (const [key, description] of before) if (after.get(key) !== description) change.address(key);
  for (const key of after.keys()) if (!before.has(key)) change.address(key);
}

/** Under each address how its endpoints are named, and whether they are ready. */
function describeAddresses(set: EndpointSet): Map<AddressKey, string> {
  const descriptions = new Map<AddressKey, string>();
  for (const group of set.groups) {
    for (let index = 0; index < group.count; index++) {
      const key = addressKey(group.addresses, index * group.addressLength, group.addressLength);
      const readiness = index < group.readyCount ? ",ready" : ",not ready";
      // What is named after its address is so in both states.
      const label = group.labels?.[index];
      const description = label ? `${label}${readiness}` : readiness;
      const known = descriptions.get(key);
      descriptions.set(key, known === undefined ? description : known + description);
    }
  }
  return descriptions;
}
