/** All records of services in one zone, for zone transfers (docs/spec/kubernetes-dns.md#transfer). */
import { Name } from "../../dns/name.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { RecordType } from "../../dns/type-names.ts";
import type { Port } from "../objects/objects.ts";
import {
  type EndpointReference,
  endpointLabel,
  type ServiceEndpoints,
} from "../store/services/service-endpoints.ts";
import { addressRecords, endpointAddressRecords, packedAddressRecords } from "./address-records.ts";
import { resolveApex, resolveNameServerAddress } from "./apex-answers.ts";
import type { ClusterView } from "./cluster-view.ts";
import { type ClusterZone, joinLabels } from "./cluster-zone.ts";
import { aliasRecord } from "./service-answers.ts";
import {
  clusterServiceRecords,
  endpointServiceRecords,
  isPortNamed,
  type PortFilter,
  type ServiceNaming,
} from "./service-records.ts";
import type { ServiceState } from "./service-states.ts";

/** Records of a zone that belong to no service, without the SOA record. */
export function serverRecords(view: ClusterView, zone: ClusterZone): readonly ResourceRecord[] {
  return [
    ...resolveApex(view, zone, zone, zone.name, RecordType.NS).answer,
    ...resolveNameServerAddress(view, zone, zone.nameServer, RecordType.A).answer,
    ...resolveNameServerAddress(view, zone, zone.nameServer, RecordType.AAAA).answer,
  ];
}

/** Those of a service. Each is what a query for it would get. */
export function serviceRecords(
  state: ServiceState,
  zone: ClusterZone,
  ttl: number,
): readonly ResourceRecord[] {
  const { entry, service } = state;
  const name = zone.serviceName(entry);
  if (name === undefined) return [];
  switch (service.type) {
    case "clusterIP": {
      if (service.clusterAddresses.length === 0) return [];
      const serve = (owner: Name, ports: readonly Port[]) =>
        clusterServiceRecords(owner, ttl, zone, entry, service, ports).answer;
      return [
        ...addressRecords(name, ttl, service.clusterAddresses, 4),
        ...addressRecords(name, ttl, service.clusterAddresses, 16),
        ...serve(name, service.ports),
        ...namedPorts(service.ports).flatMap((filter) => {
          const owner = portName(name, filter);
          const ports = service.ports.filter((port) => isPortNamed(port, filter));
          return owner === undefined ? [] : serve(owner, ports);
        }),
      ];
    }
    case "headless":
      return headlessRecords(state, zone, ttl);
    case "externalName":
      if (service.externalName === "") return [];
      return [aliasRecord(name, ttl, Name.fromLabels(service.externalName.split(".")))];
  }
}

/**
 * Addresses at the name of the service and at those of its endpoints, and a SRV record for each endpoint and named port.
 * @param hasBareSrv whether the names that have addresses have SRV records for all ports as well, as queries get them in external zones
 */
export function headlessRecords(
  state: ServiceState,
  zone: ServiceNaming,
  ttl: number,
  hasBareSrv = false,
): readonly ResourceRecord[] {
  const { entry } = state;
  const endpoints = state.endpoints();
  const name = zone.serviceName(entry);
  if (name === undefined || endpoints.isEmpty) return [];
  const published = endpoints.published();
  const records = [
    ...packedAddressRecords(name, ttl, endpoints.ipv4, 4),
    ...packedAddressRecords(name, ttl, endpoints.ipv6, 16),
  ];
  const bareSrv = (owner: Name, of: readonly EndpointReference[]): readonly ResourceRecord[] =>
    hasBareSrv ? endpointServiceRecords(owner, ttl, zone, entry, of, undefined).answer : [];
  records.push(...bareSrv(name, published));
  for (const [label, references] of byLabel(published)) {
    const owner = zone.endpointName(label, entry);
    if (owner === undefined) continue;
    records.push(...endpointAddressRecords(owner, ttl, references, 4));
    records.push(...endpointAddressRecords(owner, ttl, references, 16));
    records.push(...bareSrv(owner, references));
  }
  for (const filter of namedPorts(portsOf(endpoints))) {
    const owner = portName(name, filter);
    if (owner === undefined) continue;
    const matching = published.filter(({ group }) => group.ports.some((port) => isPortNamed(port, filter)));
    records.push(...endpointServiceRecords(owner, ttl, zone, entry, matching, filter).answer);
  }
  return records;
}

/** The ports that a name stands for, each once. */
export function namedPorts(ports: readonly Port[]): PortFilter[] {
  const filters = new Map<string, PortFilter>();
  for (const { name, protocol } of ports) {
    if (name !== "") filters.set(`${name} ${protocol}`, { port: name, protocol });
  }
  return [...filters.values()];
}

/** `_port._protocol.<service>`; undefined where that is longer than a name can be. */
export function portName(service: Name, { port, protocol }: PortFilter): Name | undefined {
  return joinLabels([`_${port}`, `_${protocol}`], service);
}

function portsOf(endpoints: ServiceEndpoints): Port[] {
  return endpoints.groups.flatMap((group) => (endpoints.visibleCount(group) > 0 ? group.ports : []));
}

function byLabel(endpoints: readonly EndpointReference[]): Map<string, EndpointReference[]> {
  const labels = new Map<string, EndpointReference[]>();
  for (const reference of endpoints) {
    const label = endpointLabel(reference.group, reference.index);
    const known = labels.get(label);
    if (known === undefined) labels.set(label, [reference]);
    else known.push(reference);
  }
  return labels;
}
