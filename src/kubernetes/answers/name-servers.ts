/** Under which names and addresses the cluster reaches this server (docs/spec/kubernetes-dns.md#name-servers). */
import type { Name } from "../../dns/name.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { addressKey, equalOctets } from "../objects/addresses.ts";
import type { IndexedService } from "../store/services/indexed-service.ts";
import { addressStandsAt, endpointLabel } from "../store/services/service-endpoints.ts";
import type { ClusterView } from "./cluster-view.ts";
import type { ClusterZone } from "./cluster-zone.ts";

export interface NameServer {
  readonly name: Name;
  readonly octets: Uint8Array;
}

/**
 * The services that have this server among their endpoints: by their cluster addresses, a headless one by its
 * endpoints. Where there is none, `ns.dns.<zone>` with the addresses of this machine.
 */
export function findNameServers(view: ClusterView, zone: ClusterZone): NameServer[] {
  const own = view.ownAddresses().flatMap((text) => parseIpAddress(text) ?? []);
  const servers: NameServer[] = [];
  for (const entry of findOwnServices(view, own)) {
    for (const server of serversOf(zone, entry)) {
      if (
        !servers.some((known) => known.name.equals(server.name) && equalOctets(known.octets, server.octets))
      ) {
        servers.push(server);
      }
    }
  }
  return servers.length > 0 ? servers : own.map((octets) => ({ name: zone.nameServer, octets }));
}

/** The shown services that have one of these addresses among their published endpoints. */
export function findOwnServices(view: ClusterView, own: readonly Uint8Array[]): IndexedService[] {
  const entries = new Map<number, IndexedService>();
  for (const octets of own) {
    for (const set of view.store.services.endpointSetsAt(addressKey(octets))) {
      const entry = set.owner;
      if (entry.type === undefined || entry.type === "externalName" || !view.shows(entry)) continue;
      const published = set.groups.some((group) => {
        const visible = entry.visibleCount(group);
        for (let index = 0; index < visible; index++) if (addressStandsAt(group, index, octets)) return true;
        return false;
      });
      if (published) entries.set(entry.slot, entry);
    }
  }
  return [...entries.values()];
}

function serversOf(zone: ClusterZone, entry: IndexedService): NameServer[] {
  const { service } = entry;
  if (service?.type === "clusterIP") {
    const name = zone.serviceName(entry);
    return name === undefined ? [] : service.clusterAddresses.map((octets) => ({ name, octets }));
  }
  return entry.endpoints.published().flatMap(({ group, index }) => {
    const name = zone.endpointName(endpointLabel(group, index), entry);
    const start = index * group.addressLength;
    return name === undefined
      ? []
      : { name, octets: group.addresses.slice(start, start + group.addressLength) };
  });
}
