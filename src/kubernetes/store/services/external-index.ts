/** Services by the addresses under which the outside reaches them. Filled only where those are kept (`k8s_external`). */

import type { ColumnMemory } from "../../../lib/collections/slab/column-memory.ts";
import { parseIpAddress } from "../../../lib/net/ip-address.ts";
import { type AddressKey, addressKey } from "../../objects/addresses.ts";
import type { Service } from "../../objects/objects.ts";
import { type AddressPrefix, AddressPrefixes } from "../tables/address-prefixes.ts";
import { AddressSlots } from "../tables/address-slots.ts";
import { SlotSet } from "../tables/slot-set.ts";
import type { ChangeRecorder } from "../tables/store-change.ts";
import { entriesAt } from "./entries-at.ts";
import { type EntryTables, IndexedService } from "./indexed-service.ts";

export class ExternalIndex {
  readonly #tables: EntryTables;
  readonly #byAddress: AddressSlots;
  readonly #prefixes: AddressPrefixes;
  readonly #named: SlotSet;

  constructor(memory: ColumnMemory, tables: EntryTables) {
    this.#tables = tables;
    this.#prefixes = new AddressPrefixes(memory);
    this.#byAddress = new AddressSlots(memory, this.#prefixes);
    this.#named = new SlotSet(memory);
  }

  get octets(): number {
    return this.#byAddress.octets + this.#prefixes.octets + this.#named.octets;
  }

  /** The services that have an external address: several may share that of one load balancer. */
  at(key: AddressKey): readonly IndexedService[] {
    return entriesAt(this.#tables, this.#byAddress, key, externalKeys);
  }

  /** Whether an external address begins so. */
  hasAddressBelow(prefix: AddressPrefix): boolean {
    return this.#prefixes.has(prefix);
  }

  /** The services that are known outside by a host name, among others. */
  *named(): Generator<Service> {
    for (const slot of this.#named.values()) {
      const { service } = new IndexedService(this.#tables, slot);
      if (service !== undefined) yield service;
    }
  }

  /** @param service what takes the place of `old`; undefined for a service that is gone */
  replace(
    entry: IndexedService,
    old: Service | undefined,
    service: Service | undefined,
    change: ChangeRecorder,
  ): void {
    change.externalService(entry.key);
    const before = new Set(externalKeys(old));
    const after = new Set(externalKeys(service));
    for (const key of before) {
      if (after.has(key)) continue;
      this.#byAddress.delete(key, entry.slot);
      change.externalAddress(key);
    }
    for (const key of after) {
      if (before.has(key)) continue;
      this.#byAddress.add(key, entry.slot);
      change.externalAddress(key);
    }
    if (service !== undefined && after.size < service.externalAddresses.length) this.#named.add(entry.slot);
    else this.#named.delete(entry.slot);
  }

  /** What is said of a service outside came or went with its namespace. */
  touch(entry: IndexedService, change: ChangeRecorder): void {
    const { service } = entry;
    if (service === undefined || service.externalAddresses.length === 0) return;
    change.externalService(entry.key);
    for (const key of externalKeys(service)) change.externalAddress(key);
  }
}

/** Those external addresses that are no host names. */
function externalKeys(service: Service | undefined): AddressKey[] {
  return (service?.externalAddresses ?? []).flatMap((text) => {
    const octets = parseIpAddress(text);
    return octets === undefined ? [] : addressKey(octets);
  });
}
