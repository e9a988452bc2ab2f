/** Names of addresses (docs/spec/kubernetes-dns.md#reverse-names). */
import type { Name } from "../../dns/name.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { PTR } from "../../dns/record-table.ts";
import { RecordType } from "../../dns/type-names.ts";
import { type AddressKey, addressOfKey } from "../objects/addresses.ts";
import { addressStandsAt, endpointLabel } from "../store/services/service-endpoints.ts";
import { addressOfReverseName, prefixOfReverseName } from "../store/tables/reverse-names.ts";
import type { ClusterView } from "./cluster-view.ts";
import type { ClusterZone } from "./cluster-zone.ts";
import { answered, BEGINNING_OF_ADDRESSES, NO_DATA, NO_SUCH_ADDRESS, type Resolution } from "./resolution.ts";

/**
 * Answers for a name below a reverse zone. Targets stand in `zone`, the first zone that is not one for reverse names
 * (docs/spec/kubernetes-dns.md#reverse-zones). A name that is no complete address exists if an address of the cluster stands below it. Whether that address is published is
 * not looked at: at worst, the name exists although nothing below it does, which misleads no resolver.
 */
export function resolveReverse(view: ClusterView, zone: ClusterZone, owner: Name, type: number): Resolution {
  const key = addressOfReverseName(owner);
  if (key === undefined) {
    const prefix = prefixOfReverseName(owner);
    return prefix !== undefined && view.store.services.hasAddressBelow(prefix)
      ? BEGINNING_OF_ADDRESSES
      : NO_SUCH_ADDRESS;
  }
  const targets = namesOfAddress(view, zone, key);
  if (targets.length === 0) return NO_SUCH_ADDRESS;
  if (type !== RecordType.PTR) return NO_DATA;
  return answered(targets.map((target): ResourceRecord => PTR.create(owner, view.ttl, { target })));
}

/** The services with this cluster address, or else the published endpoints with this address (docs/spec/kubernetes-dns.md#reverse-endpoint and docs/spec/kubernetes-dns.md#cluster-address-first). */
function namesOfAddress(view: ClusterView, zone: ClusterZone, key: AddressKey): Name[] {
  const services = view.store.services.servicesAt(key);
  const names: Name[] = [];
  if (services.length > 0) {
    for (const entry of services) {
      const name = view.shows(entry) ? zone.serviceName(entry) : undefined;
      if (name !== undefined) names.push(name);
    }
    return names;
  }
  const octets = addressOfKey(key);
  // Nearly every address has one name, whose text need not be made.
  let texts: Set<string> | undefined;
  for (const set of view.store.services.endpointSetsAt(key)) {
    const entry = set.owner;
    // Slices may outlive their service for a moment; a name that leads nowhere helps no client.
    if (entry.type === undefined || entry.type === "externalName" || !view.shows(entry)) continue;
    for (const group of set.groups) {
      const visible = entry.visibleCount(group);
      for (let index = 0; index < visible; index++) {
        if (!addressStandsAt(group, index, octets)) continue;
        const name = zone.endpointName(endpointLabel(group, index), entry);
        if (name === undefined) continue;
        if (names.length > 0) {
          texts ??= new Set(names.map((known) => known.toString()));
          const text = name.toString();
          if (texts.has(text)) continue;
          texts.add(text);
        }
        names.push(name);
      }
    }
  }
  return names;
}
