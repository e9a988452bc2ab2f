/** One service as the outside sees it (src/plugins/k8s_external/README.md). */
import type { Name } from "../../dns/name.ts";
import { RecordType } from "../../dns/type-names.ts";
import {
  addressLengthOf,
  addressRecords,
  endpointAddressRecords,
  packedAddressRecords,
} from "../answers/address-records.ts";
import {
  aliasOf,
  answered,
  NO_DATA,
  NO_EXTERNAL_ADDRESS,
  NO_READY_ENDPOINT,
  NO_SUCH_ENDPOINT,
  NO_SUCH_PORT,
  type Resolution,
} from "../answers/resolution.ts";
import { aliasRecord, hasProtocol } from "../answers/service-answers.ts";
import {
  endpointServiceRecords,
  isPortNamed,
  type PortFilter,
  ServiceRecords,
} from "../answers/service-records.ts";
import type { Port, Service } from "../objects/objects.ts";
import type { IndexedService, NamedService } from "../store/services/indexed-service.ts";
import { type ExternalAddresses, externalAddresses } from "./external-addresses.ts";
import type { ExternalView } from "./external-view.ts";
import type { ExternalZone } from "./external-zone.ts";

export interface ExternalResolution extends Resolution {
  /** Targets of SRV records, whose addresses the server has to ask for: they belong into the additional section. */
  readonly targets?: readonly Name[];
}

/** A question to a service that may be gone meanwhile. */
export interface ExternalQuestion {
  readonly view: ExternalView;
  readonly zone: ExternalZone;
  /** The name as it was asked: two to four labels below the zone. */
  readonly owner: Name;
  readonly type: number;
  readonly entry: NamedService;
  /** That of the entry. */
  readonly service: Service;
}

/** A question to a service that is there. */
export interface ExternalServiceQuestion extends ExternalQuestion {
  readonly entry: IndexedService;
}

export function resolveExternalService(question: ExternalServiceQuestion): ExternalResolution {
  const { view, zone, owner, entry, service } = question;
  const resolution = resolveExternalAddresses(question);
  if (resolution !== undefined) return resolution;
  const count = owner.labelCount - zone.name.labelCount;
  const filter = count === 4 ? portFilter(owner) : undefined;
  if (!view.headless || service.type === "externalName") return NO_EXTERNAL_ADDRESS;
  if (count === 3) {
    const { services } = view.cluster.store;
    const label = owner.labelText(0);
    const named = services.endpointsNamed(entry, label);
    const isHeadless = service.type === "headless";
    if (named.length === 0 && isHeadless && hasProtocol(label.toLowerCase(), entry.endpoints.published()))
      return NO_DATA;
    return resolveEndpoints(question, named, undefined);
  }
  return service.type === "headless" ? resolveHeadless(question, filter) : NO_EXTERNAL_ADDRESS;
}

/** @returns `undefined` for a service without external addresses */
export function resolveExternalAddresses(question: ExternalQuestion): ExternalResolution | undefined {
  const { zone, owner, service } = question;
  const addresses = externalAddresses(service);
  if (addresses.octets.length === 0 && addresses.hosts.length === 0) return undefined;
  const count = owner.labelCount - zone.name.labelCount;
  return resolveAddresses(question, addresses, count === 4 ? portFilter(owner) : undefined);
}

/** `_port._protocol` in front of a service; the underscores may be missing, as in the cluster's own zones. */
function portFilter(owner: Name): PortFilter {
  return { port: withoutUnderscore(owner.labelText(0)), protocol: withoutUnderscore(owner.labelText(1)) };
}

function withoutUnderscore(label: string): string {
  return label.startsWith("_") ? label.slice(1) : label;
}

/** A single label in front of the service is not looked at: the addresses are those of the service. */
function resolveAddresses(
  question: ExternalQuestion,
  { octets, hosts }: ExternalAddresses,
  filter: PortFilter | undefined,
): ExternalResolution {
  const { view, owner, type, service } = question;
  const ports =
    filter === undefined ? service.ports : service.ports.filter((port) => isPortNamed(port, filter));
  if (filter !== undefined && ports.length === 0) return NO_SUCH_PORT;
  if (type === RecordType.SRV) return serviceRecords(question, { octets, hosts }, ports);
  const [host] = hosts;
  // A name that has addresses cannot be an alias as well (RFC 1034 section 3.6.2), nor the alias of two names.
  if (octets.length === 0 && host !== undefined) {
    if (type === RecordType.CNAME) return answered([aliasRecord(owner, view.cluster.ttl, host)]);
    return addressLengthOf(type) === 0 ? NO_DATA : aliasOf(host);
  }
  const length = addressLengthOf(type);
  return length === 0 ? NO_DATA : answered(addressRecords(owner, view.ttl, octets, length));
}

/** Addresses stand behind the name of the service, host names speak for themselves. */
function serviceRecords(
  { view, zone, owner, entry }: ExternalQuestion,
  { octets, hosts }: ExternalAddresses,
  ports: readonly Port[],
): ExternalResolution {
  const own = zone.serviceName(entry);
  const records = new ServiceRecords(owner, view.ttl, (octets.length + hosts.length) * ports.length);
  for (const port of ports) {
    if (own !== undefined && octets.length > 0) records.addPort(own, port.number);
    for (const host of hosts) records.addPort(host, port.number);
  }
  if (records.answer.length === 0) return NO_DATA;
  if (own !== undefined) for (const address of octets) records.addAddress(own, address, 0, address.length);
  return { ...answered(records.answer, records.additional), targets: hosts };
}

function resolveHeadless(question: ExternalServiceQuestion, filter: PortFilter | undefined): Resolution {
  const { view, owner, type, entry } = question;
  const { endpoints } = entry;
  if (endpoints.isEmpty) return NO_READY_ENDPOINT;
  if (filter !== undefined) {
    const matching = endpoints
      .published()
      .filter(({ group }) => group.ports.some((port) => isPortNamed(port, filter)));
    return matching.length === 0 ? NO_SUCH_PORT : resolveEndpoints(question, matching, filter);
  }
  switch (type) {
    case RecordType.A:
      return answered(packedAddressRecords(owner, view.ttl, endpoints.ipv4, 4));
    case RecordType.AAAA:
      return answered(packedAddressRecords(owner, view.ttl, endpoints.ipv6, 16));
    default:
      return resolveEndpoints(question, endpoints.published(), undefined);
  }
}

type Endpoints = ReturnType<IndexedService["endpoints"]["published"]>;

function resolveEndpoints(
  { view, zone, owner, type, entry }: ExternalQuestion,
  endpoints: Readonly<Endpoints>,
  filter: PortFilter | undefined,
): Resolution {
  if (endpoints.length === 0) return NO_SUCH_ENDPOINT;
  if (type === RecordType.SRV) return endpointServiceRecords(owner, view.ttl, zone, entry, endpoints, filter);
  const length = addressLengthOf(type);
  return length === 0 ? NO_DATA : answered(endpointAddressRecords(owner, view.ttl, endpoints, length));
}
