/** What belongs to an external zone itself: SOA, NS, and the names of the server (src/plugins/k8s_external/README.md). */
import type { Name } from "../../dns/name.ts";
import { NS, SOA } from "../../dns/record-table.ts";
import { RecordType } from "../../dns/type-names.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import type { StartOfAuthority } from "../../plugin/contract/transfer.ts";
import { addressLengthOf, addressRecord } from "../answers/address-records.ts";
import { findOwnServices } from "../answers/name-servers.ts";
import { answered, NO_DATA, NO_SUCH_FORM, type Resolution } from "../answers/resolution.ts";
import { type AddressKey, addressKey, addressOfKey } from "../objects/addresses.ts";
import { externalAddresses } from "./external-addresses.ts";
import { type ExternalView, externalSerial } from "./external-view.ts";
import type { ExternalZone } from "./external-zone.ts";

/** At the zone's own name. */
export function resolveZone(view: ExternalView, zone: ExternalZone, owner: Name, type: number): Resolution {
  if (type === RecordType.SOA) return answered([startOfExternalAuthority(view, zone, owner)]);
  if (type !== RecordType.NS) return NO_DATA;
  const { ttl } = view;
  const addresses = nameServerAddresses(view).map((octets) =>
    addressRecord(zone.nameServer, ttl, octets, 0, octets.length === 4 ? 4 : 16),
  );
  return answered([NS.create(owner, ttl, { nameServer: zone.nameServer })], addresses);
}

/** At `<apex>.<zone>` and below it: no service has a name there. */
export function resolveServerName(
  view: ExternalView,
  zone: ExternalZone,
  owner: Name,
  type: number,
): Resolution {
  if (owner.equals(zone.apex)) return NO_DATA;
  if (!owner.equals(zone.nameServer)) return NO_SUCH_FORM;
  const length = addressLengthOf(type);
  if (length === 0) return NO_DATA;
  const addresses = nameServerAddresses(view).filter((octets) => octets.length === length);
  return answered(addresses.map((octets) => addressRecord(owner, view.ttl, octets, 0, length)));
}

/** The SOA of a zone; `owner` is the zone's name as it was asked, or the zone's own. */
export function startOfExternalAuthority(
  view: ExternalView,
  zone: ExternalZone,
  owner: Name = zone.name,
): StartOfAuthority {
  return SOA.create(owner, view.ttl, {
    primary: zone.nameServer,
    mailbox: zone.mailbox,
    serial: externalSerial(view),
    refresh: 7200,
    retry: 1800,
    expire: 86_400,
    minimum: view.ttl,
  });
}

/**
 * Where the outside reaches this server: the external addresses of the services that have it among their endpoints, with `headless` also
 * the endpoints of headless ones. Where there is no such service, the addresses of this machine.
 */
export function nameServerAddresses({ cluster, headless }: ExternalView): Uint8Array[] {
  const own = cluster.ownAddresses().flatMap((text) => parseIpAddress(text) ?? []);
  const services = findOwnServices(cluster, own);
  if (services.length === 0) return own;
  const keys = new Set<AddressKey>();
  for (const { service, endpoints } of services) {
    if (service === undefined) continue;
    if (headless && service.type === "headless" && service.externalAddresses.length === 0) {
      for (const { group, index } of endpoints.published())
        keys.add(addressKey(group.addresses, index * group.addressLength, group.addressLength));
    } else {
      for (const octets of externalAddresses(service).octets) keys.add(addressKey(octets));
    }
  }
  return Array.from(keys, addressOfKey);
}
