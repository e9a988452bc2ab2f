/** Explains what an answer of the cluster rests on, in words for operators. For explanations only, as why-not.ts. */
import type { Name } from "../../dns/name.ts";
import { RecordType } from "../../dns/type-names.ts";
import { formatIpAddress } from "../../lib/net/ip-address.ts";
import { countOf } from "../../lib/text/count-of.ts";
import type { ClusterAnswers } from "../answers/cluster-answers.ts";
import type { ClusterView } from "../answers/cluster-view.ts";
import type { ClusterZone } from "../answers/cluster-zone.ts";
import type { ClusterName } from "../answers/name-grammar.ts";
import { addressKey, formatAddressKey, parseDashedAddress } from "../objects/addresses.ts";
import { serviceKey } from "../objects/names.ts";
import type { Service } from "../objects/objects.ts";
import type { IndexedService } from "../store/services/indexed-service.ts";
import { endpointLabel } from "../store/services/service-endpoints.ts";
import { addressOfReverseName } from "../store/tables/reverse-names.ts";
import { inWordsOf } from "./why-not-imports.ts";
import { listOf } from "./why-not-words.ts";

/** A question that the cluster has records for. */
export interface Answered {
  readonly answers: ClusterAnswers;
  readonly zone: ClusterZone;
  readonly name: Name;
  readonly type: number;
}

/** @returns one sentence without full stop */
export function whySo({ answers, zone, name, type }: Answered): string {
  const { view } = answers;
  if (zone.isReverse) {
    return name.labelCount === zone.name.labelCount ? "the zone itself" : whyReverse(view, name);
  }
  const parsed = answers.parse(name, zone);
  switch (parsed.kind) {
    case "service":
    case "endpoint":
    case "port":
    case "zonal":
      return inWordsOf(view, whyService(view, parsed, type));
    case "pod":
      return whyPod(view, parsed);
    case "dnsVersion":
      return "the version of the specification that is kept";
    case "nameServer":
      return "the addresses of this server";
    default:
      return "the zone itself";
  }
}

function whyService(view: ClusterView, parsed: ClusterName, type: number): string {
  const entry = view.store.services.entry(serviceKey(parsed.namespace, parsed.service));
  const service = entry?.service;
  if (entry === undefined || service === undefined) return "";
  const full = `Service ${service.namespace}/${service.name}`;
  switch (parsed.kind) {
    case "endpoint":
      return `endpoint ${parsed.endpoint} of ${full}`;
    case "port":
      return `port ${parsed.port} of ${full}, over ${parsed.protocol.toUpperCase()}: ${what(view, entry, service)}`;
    case "zonal":
      return `${full}, its endpoints in the topology zone ${parsed.topologyZone}${fallback(entry, parsed)}`;
    default: {
      const ports = type === RecordType.SRV ? ", with all its ports" : "";
      return `${full}${ports}: ${what(view, entry, service)}`;
    }
  }
}

/** `cluster address 10.96.20.5; 2 endpoints, 1 ready`. */
function what(view: ClusterView, entry: IndexedService, service: Service): string {
  if (service.type === "externalName") return `an ExternalName, which is an alias of ${service.externalName}`;
  const endpoints = endpointsText(view, entry, service);
  if (service.type === "headless") return `headless; ${endpoints}`;
  const addresses = service.clusterAddresses.map((octets) => formatIpAddress(octets));
  return `cluster ${addresses.length === 1 ? "address" : "addresses"} ${listOf(addresses)}; ${endpoints}`;
}

function endpointsText(view: ClusterView, { endpoints }: IndexedService, service: Service): string {
  if (!view.store.kinds.has("endpoints")) return "'noendpoints' is in force, so its endpoints are not known";
  const all = new Set<string>();
  const ready = new Set<string>();
  for (const group of endpoints.groups) {
    for (let index = 0; index < group.count; index++) {
      const label = endpointLabel(group, index);
      all.add(label);
      if (index < group.readyCount) ready.add(label);
    }
  }
  const counted = countOf(all.size, "endpoint");
  if (all.size === 0) return "no endpoints, so nothing answers there";
  // The API marks the endpoints of such a Service as ready, whatever their probes say.
  if (service.publishNotReadyAddresses)
    return `${counted}, published whether ready or not (publishNotReadyAddresses)`;
  if (ready.size === all.size) return all.size === 1 ? `${counted}, ready` : `${counted}, all ready`;
  return `${counted}, ${ready.size === 0 ? "none" : ready.size} ready`;
}

function fallback({ endpoints }: IndexedService, { topologyZone, prefer }: ClusterName): string {
  if (!prefer) return "";
  const isThere = endpoints.published().some(({ group, index }) => group.zones?.[index] === topologyZone);
  return isThere ? "" : ": there are none, so all of them stand in";
}

function whyPod(view: ClusterView, { endpoint, namespace }: ClusterName): string {
  if (view.pods === "insecure")
    return "'pods insecure' is in force: every address has a name, whether or not a pod has it";
  const octets = parseDashedAddress(endpoint);
  if (octets === undefined) return "";
  const key = addressKey(octets);
  const owners = view.store.pods.at(key).filter((pod) => pod.namespace === namespace);
  return `${formatAddressKey(key)} is the address of pod ${listOf(owners.map((pod) => `${namespace}/${pod.name}`))}`;
}

function whyReverse(view: ClusterView, name: Name): string {
  const key = addressOfReverseName(name);
  if (key === undefined) return "";
  const address = formatAddressKey(key);
  const { services } = view.store;
  const owners = services.servicesAt(key).map((entry) => `${entry.namespace.name}/${entry.name}`);
  if (owners.length > 0) return `${address} is the cluster address of Service ${listOf(owners)}`;
  const sets = services.endpointSetsAt(key).map((set) => `${set.namespace}/${set.service}`);
  return `${address} is an endpoint of Service ${listOf(sets)}`;
}
