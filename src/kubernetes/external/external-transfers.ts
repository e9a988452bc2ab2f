/** External zones as a plugin for zone transfers takes them (src/plugins/k8s_external/README.md). */

import type { Name } from "../../dns/name.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { RecordType } from "../../dns/type-names.ts";
import type { Clock } from "../../lib/time/clock.ts";
import { changesServices } from "../answers/cluster-transfers.ts";
import { FollowedZones } from "../answers/followed-zones.ts";
import { type ServiceState, shownService, shownServices } from "../answers/service-states.ts";
import { headlessRecords, namedPorts, portName } from "../answers/zone-copy.ts";
import { externalAddresses } from "./external-addresses.ts";
import type { ExternalAnswers } from "./external-answers.ts";
import { resolveServerName, resolveZone, startOfExternalAuthority } from "./external-apex.ts";
import { resolveExternalAddresses } from "./external-service.ts";
import { type ExternalView, externalSerial } from "./external-view.ts";
import type { ExternalZone } from "./external-zone.ts";

export function externalTransfers({ view }: ExternalAnswers, clock: Clock): FollowedZones {
  const { cluster, headless } = view;
  const { store } = cluster;
  return new FollowedZones({
    view: cluster,
    clock,
    zones: view.zones
      .filter((zone) => !zone.isReverse)
      .map((zone) => ({
        name: zone.name,
        live: {
          serial: () => externalSerial(view),
          seal() {
            store.sealSerial(externalSerial(view));
            return startOfExternalAuthority(view, zone);
          },
          server: () => serverRecords(view, zone),
          states: () => shownServices(cluster),
          state: (key) => shownService(cluster, key),
          recordsOf: (state) => recordsOf(view, zone, state),
        },
      })),
    touched(change) {
      if (headless && changesServices(change)) return [...change.externalServices, ...change.services];
      return change.externalServices.length === 0 ? undefined : change.externalServices;
    },
  });
}

function serverRecords(view: ExternalView, zone: ExternalZone): readonly ResourceRecord[] {
  return [
    ...resolveZone(view, zone, zone.name, RecordType.NS).answer,
    ...resolveServerName(view, zone, zone.nameServer, RecordType.A).answer,
    ...resolveServerName(view, zone, zone.nameServer, RecordType.AAAA).answer,
  ];
}

function recordsOf(view: ExternalView, zone: ExternalZone, state: ServiceState): readonly ResourceRecord[] {
  const { entry, service } = state;
  const name = zone.serviceName(entry);
  // Names of the server stand below `apex`: a namespace of that name has none.
  if (name === undefined || name.isAtOrBelow(zone.apex)) return [];
  const { octets, hosts } = externalAddresses(service);
  if (octets.length + hosts.length === 0)
    return view.headless && service.type === "headless" ? headlessRecords(state, zone, view.ttl, true) : [];
  // An alias has no other records beside it, whatever queries for them get.
  const types = octets.length === 0 ? [RecordType.CNAME] : [RecordType.A, RecordType.AAAA, RecordType.SRV];
  const ask = (owner: Name, type: number) =>
    resolveExternalAddresses({ view, zone, owner, type, entry, service })?.answer ?? [];
  const records: ResourceRecord[] = types.flatMap((type) => ask(name, type));
  for (const filter of namedPorts(service.ports)) {
    const owner = portName(name, filter);
    if (owner !== undefined) records.push(...ask(owner, RecordType.SRV));
  }
  return records;
}
