/** External zones as a plugin for zone transfers takes them (CoreDNS facts 2.46). */
import type { Name } from "../../dns/name.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { RecordType } from "../../dns/type-names.ts";
import { type TransferSource, ZoneNotLoadedError, type ZoneTransfer } from "../../plugin/transfer.ts";
import { changesServices } from "../answers/cluster-transfers.ts";
import { type ServiceState, shownServices } from "../answers/service-states.ts";
import { headlessRecords, namedPorts, portName } from "../answers/zone-copy.ts";
import { externalAddresses } from "./external-addresses.ts";
import type { ExternalAnswers } from "./external-answers.ts";
import { resolveServerName, resolveZone, startOfExternalAuthority } from "./external-apex.ts";
import { resolveExternalService } from "./external-service.ts";
import { type ExternalView, externalSerial } from "./external-view.ts";
import type { ExternalZone } from "./external-zone.ts";

export class ExternalTransfers implements TransferSource {
  readonly #view: ExternalView;
  readonly #zones: readonly ExternalZone[];

  constructor({ view }: ExternalAnswers) {
    this.#view = view;
    this.#zones = view.zones.filter((zone) => !zone.isReverse);
  }

  get transferZones(): readonly Name[] {
    return this.#zones.map(({ name }) => name);
  }

  transfer(apex: Name): ZoneTransfer | undefined {
    const view = this.#view;
    const { store } = view.cluster;
    const zone = this.#zones.find(({ name }) => name.equals(apex));
    if (zone === undefined) return undefined;
    if (!store.isSynced) throw new ZoneNotLoadedError(zone.name);
    store.sealSerial(externalSerial(view));
    const copy = copyOfExternalZone(view, zone);
    return { soa: startOfExternalAuthority(view, zone), records: () => copy };
  }

  onZoneChange(listener: (apex: Name) => void): () => void {
    const { cluster, headless } = this.#view;
    return cluster.store.subscribe((change) => {
      if (change.externalServices.length === 0 && !(headless && changesServices(change))) return;
      for (const apex of this.transferZones) listener(apex);
    });
  }
}

function copyOfExternalZone(view: ExternalView, zone: ExternalZone): Iterable<ResourceRecord> {
  const server = [
    ...resolveZone(view, zone, zone.name, RecordType.NS).answer,
    ...resolveServerName(view, zone, zone.nameServer, RecordType.A).answer,
    ...resolveServerName(view, zone, zone.nameServer, RecordType.AAAA).answer,
  ];
  const states = shownServices(view.cluster);
  return {
    *[Symbol.iterator]() {
      yield* server;
      for (const state of states) yield* recordsOf(view, zone, state);
    },
  };
}

function recordsOf(view: ExternalView, zone: ExternalZone, state: ServiceState): readonly ResourceRecord[] {
  const { entry, service } = state;
  const name = zone.serviceName(entry);
  // Names of the server stand below `apex`: a namespace of that name has none.
  if (name === undefined || name.isAtOrBelow(zone.apex)) return [];
  const { octets, hosts } = externalAddresses(service);
  if (octets.length + hosts.length === 0)
    return view.headless && service.type === "headless" ? headlessRecords(state, zone, view.ttl) : [];
  // An alias has no other records beside it, whatever queries for them get.
  const types = octets.length === 0 ? [RecordType.CNAME] : [RecordType.A, RecordType.AAAA, RecordType.SRV];
  const ask = (owner: Name, type: number) =>
    resolveExternalService({ view, zone, owner, type, entry, service }).answer;
  const records: ResourceRecord[] = types.flatMap((type) => ask(name, type));
  for (const filter of namedPorts(service.ports)) {
    const owner = portName(name, filter);
    if (owner !== undefined) records.push(...ask(owner, RecordType.SRV));
  }
  return records;
}
