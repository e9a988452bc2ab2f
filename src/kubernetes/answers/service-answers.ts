/** Names below `svc` (docs/spec/kubernetes-dns.md). */
import { Name } from "../../dns/name.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { CNAME } from "../../dns/record-table.ts";
import { RecordType } from "../../dns/type-names.ts";
import type { Service } from "../objects/objects.ts";
import type { IndexedService } from "../store/services/indexed-service.ts";
import type { EndpointReference } from "../store/services/service-endpoints.ts";
import {
  addressLengthOf,
  addressRecords,
  endpointAddressRecords,
  packedAddressRecords,
} from "./address-records.ts";
import type { ClusterView } from "./cluster-view.ts";
import type { ClusterZone } from "./cluster-zone.ts";
import type { ClusterName } from "./name-grammar.ts";
import {
  aliasOf,
  answered,
  BELOW_ALIAS,
  EMPTY_SERVICE,
  NO_CLUSTER_ADDRESS,
  NO_DATA,
  NO_EXTERNAL_NAME,
  NO_NAMESPACE,
  NO_READY_ENDPOINT,
  NO_SERVICE,
  NO_SUCH_ENDPOINT,
  NO_SUCH_PORT,
  NOT_HEADLESS,
  type Resolution,
} from "./resolution.ts";
import { clusterServiceRecords, endpointServiceRecords, isPortNamed } from "./service-records.ts";

/** A question to one service. */
interface ServiceQuestion {
  readonly view: ClusterView;
  readonly zone: ClusterZone;
  /** The name as it was asked: owner of the answers. */
  readonly owner: Name;
  readonly type: number;
  readonly parsed: ClusterName;
}

/** Answers for a name of the kinds `service`, `endpoint`, `port` and `zonal`. */
export function resolveService(question: ServiceQuestion): Resolution {
  const { view, parsed } = question;
  const entry = view.store.services.findLabels(parsed);
  const service = entry?.service;
  if (entry === undefined || service === undefined) {
    return view.hasNamespaceOf(parsed) ? NO_SERVICE : NO_NAMESPACE;
  }
  if (!view.shows(entry)) return NO_NAMESPACE;
  switch (service.type) {
    case "clusterIP":
      return resolveClusterService(question, entry, service);
    case "headless":
      return resolveHeadlessService(question, entry);
    case "externalName":
      return resolveExternalName(question, service);
  }
}

function resolveClusterService(
  question: ServiceQuestion,
  entry: IndexedService,
  service: Service,
): Resolution {
  const { view, zone, owner, type, parsed } = question;
  if (service.clusterAddresses.length === 0) return NO_CLUSTER_ADDRESS;
  if (view.ignores(entry)) return EMPTY_SERVICE;
  switch (parsed.kind) {
    case "endpoint":
      if (isProtocolOf(parsed.endpoint, service.ports)) return NO_DATA;
      return resolveEndpoints(question, entry, view.store.services.endpointsNamed(entry, parsed.endpoint));
    case "zonal":
      return NOT_HEADLESS;
    case "port": {
      const ports = service.ports.filter((port) => isPortNamed(port, parsed));
      if (ports.length === 0) return NO_SUCH_PORT;
      if (type !== RecordType.SRV) break;
      return clusterServiceRecords(owner, view.ttl, zone, entry, service, ports);
    }
  }
  if (type === RecordType.SRV)
    return clusterServiceRecords(owner, view.ttl, zone, entry, service, service.ports);
  const length = addressLengthOf(type);
  return length === 0 ? NO_DATA : answered(addressRecords(owner, view.ttl, service.clusterAddresses, length));
}

function resolveHeadlessService(question: ServiceQuestion, entry: IndexedService): Resolution {
  const { view, owner, type, parsed } = question;
  const { endpoints } = entry;
  switch (parsed.kind) {
    case "endpoint": {
      const named = view.store.services.endpointsNamed(entry, parsed.endpoint);
      if (named.length === 0 && hasProtocol(parsed.endpoint, endpoints.published())) return NO_DATA;
      return resolveEndpoints(question, entry, named);
    }
    case "port": {
      const matching = endpoints
        .published()
        .filter(({ group }) => group.ports.some((port) => isPortNamed(port, parsed)));
      return matching.length === 0 ? NO_SUCH_PORT : resolveEndpoints(question, entry, matching);
    }
    case "zonal":
      return resolveZonal(question, entry);
  }
  if (endpoints.isEmpty) return NO_READY_ENDPOINT;
  switch (type) {
    case RecordType.A:
      return answered(packedAddressRecords(owner, view.ttl, endpoints.ipv4, 4));
    case RecordType.AAAA:
      return answered(packedAddressRecords(owner, view.ttl, endpoints.ipv6, 16));
    case RecordType.SRV:
      return resolveEndpoints(question, entry, endpoints.published());
    default:
      return NO_DATA;
  }
}

/** Endpoints of the zone alone (`pin`), or of the whole service where the zone has none (`prefer`). */
function resolveZonal(question: ServiceQuestion, entry: IndexedService): Resolution {
  const published = entry.endpoints.published();
  const { topologyZone, prefer } = question.parsed;
  const inZone = published.filter(({ group, index }) => group.zones?.[index] === topologyZone);
  const chosen = inZone.length === 0 && prefer ? published : inZone;
  return chosen.length === 0 ? NO_DATA : resolveEndpoints(question, entry, chosen);
}

function resolveEndpoints(
  question: ServiceQuestion,
  entry: IndexedService,
  endpoints: readonly EndpointReference[],
): Resolution {
  if (endpoints.length === 0) return NO_SUCH_ENDPOINT;
  const { view, zone, owner, type, parsed } = question;
  if (type === RecordType.SRV) {
    const filter = parsed.kind === "port" ? parsed : undefined;
    return endpointServiceRecords(owner, view.ttl, zone, entry, endpoints, filter);
  }
  const length = addressLengthOf(type);
  return length === 0 ? NO_DATA : answered(endpointAddressRecords(owner, view.ttl, endpoints, length));
}

/** An alias for every type of record, as a CNAME is; for ANY it is the record itself (RFC 1034 section 3.6.2). */
function resolveExternalName({ view, owner, type, parsed }: ServiceQuestion, service: Service): Resolution {
  if (parsed.kind !== "service") return BELOW_ALIAS;
  if (service.externalName === "") return NO_EXTERNAL_NAME;
  const target = Name.fromLabels(service.externalName.split("."));
  if (type === RecordType.CNAME || type === RecordType.ANY)
    return answered([aliasRecord(owner, view.ttl, target)]);
  return aliasOf(target);
}

export function aliasRecord(owner: Name, ttl: number, target: Name): ResourceRecord {
  return CNAME.create(owner, ttl, { target });
}

/** `_tcp` and the like stand between a service and its ports: they exist without having records. */
function isProtocolOf(label: string, ports: Service["ports"]): boolean {
  return label.startsWith("_") && ports.some(({ name, protocol }) => name !== "" && label === `_${protocol}`);
}

export function hasProtocol(label: string, endpoints: readonly EndpointReference[]): boolean {
  return label.startsWith("_") && endpoints.some(({ group }) => isProtocolOf(label, group.ports));
}
