/** What belongs to a zone itself: SOA, NS, the server's own name, the version (docs/spec/kubernetes-dns.md#the-zone-itself). */
import type { Name } from "../../dns/name.ts";
import { NS, SOA, TXT } from "../../dns/record-table.ts";
import { RecordType } from "../../dns/type-names.ts";
import type { StartOfAuthority } from "../../plugin/contract/transfer.ts";
import { addressLengthOf, addressRecord } from "./address-records.ts";
import type { ClusterView } from "./cluster-view.ts";
import type { ClusterZone } from "./cluster-zone.ts";
import { findNameServers } from "./name-servers.ts";
import { answered, NO_DATA, type Resolution } from "./resolution.ts";

const SCHEMA_VERSION = new TextEncoder().encode("1.1.0");

/** Fixed, whatever TTL is configured (docs/spec/kubernetes-dns.md#schema-version). */
const SCHEMA_VERSION_TTL = 28_800;

const SOA_TTL_CEILING = 300;

/** @param primary the zone that names of services stand in; the same as `zone`, unless that is for reverse names */
export function resolveApex(
  view: ClusterView,
  zone: ClusterZone,
  primary: ClusterZone,
  owner: Name,
  type: number,
): Resolution {
  if (type === RecordType.SOA) return answered([startOfAuthority(view, zone, owner)]);
  return type === RecordType.NS ? resolveNameServers(view, primary, owner) : NO_DATA;
}

/** `dns-version` (docs/spec/kubernetes-dns.md#schema-version). */
export function resolveSchemaVersion(owner: Name, type: number): Resolution {
  if (type !== RecordType.TXT) return NO_DATA;
  return answered([TXT.create(owner, SCHEMA_VERSION_TTL, { strings: [SCHEMA_VERSION] })]);
}

/** `ns.dns`: the addresses of the name servers, under that name (docs/spec/kubernetes-dns.md#name-server-address). */
export function resolveNameServerAddress(
  view: ClusterView,
  zone: ClusterZone,
  owner: Name,
  type: number,
): Resolution {
  const length = addressLengthOf(type);
  if (length === 0) return NO_DATA;
  const servers = findNameServers(view, zone).filter(({ octets }) => octets.length === length);
  return answered(servers.map(({ octets }) => addressRecord(owner, view.ttl, octets, 0, length)));
}

/** The SOA of a zone (docs/spec/kubernetes-dns.md#negative-soa); `owner` is the zone's name as it was asked, or the zone's own. */
export function startOfAuthority(
  view: ClusterView,
  zone: ClusterZone,
  owner: Name = zone.name,
): StartOfAuthority {
  return SOA.create(owner, Math.min(view.ttl, SOA_TTL_CEILING), {
    primary: zone.nameServer,
    mailbox: zone.mailbox,
    serial: view.store.serial,
    refresh: 7200,
    retry: 1800,
    expire: 86_400,
    minimum: view.ttl,
  });
}

function resolveNameServers(view: ClusterView, zone: ClusterZone, owner: Name): Resolution {
  const servers = findNameServers(view, zone);
  const names = new Map<string, Name>();
  for (const { name } of servers) names.set(name.toString(), name);
  // A zone needs an NS record; its address may follow when the network is up.
  if (names.size === 0) names.set(zone.nameServer.toString(), zone.nameServer);
  const answer = Array.from(names.values(), (nameServer) => NS.create(owner, view.ttl, { nameServer }));
  const additional = servers.map(({ name, octets }) =>
    addressRecord(name, view.ttl, octets, 0, octets.length === 4 ? 4 : 16),
  );
  return answered(answer, additional);
}
