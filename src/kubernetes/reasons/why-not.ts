/**
 * Why a question to the cluster has no answer, in words for the people who run it. It goes through whole indexes and
 * makes texts, so it is for explanations and not for serving.
 */
import type { Name } from "../../dns/name.ts";
import { RecordType, recordTypeName } from "../../dns/type-names.ts";
import { countOf } from "../../lib/text/count-of.ts";
import { nearestWord } from "../../lib/text/nearest-word.ts";
import type { ClusterAnswers } from "../answers/cluster-answers.ts";
import type { ClusterView } from "../answers/cluster-view.ts";
import type { ClusterZone } from "../answers/cluster-zone.ts";
import type { ClusterName } from "../answers/name-grammar.ts";
import { BEGINNING_OF_ADDRESSES, type Resolution } from "../answers/resolution.ts";
import { serviceKey } from "../objects/names.ts";
import type { Port, Service } from "../objects/objects.ts";
import type { IndexedService } from "../store/services/indexed-service.ts";
import { whyNoPod, whyNoReverse } from "./why-not-addresses.ts";
import { whyNoEndpoint, whyNoEndpoints } from "./why-not-endpoints.ts";
import { inWordsOf, whyNotImported } from "./why-not-imports.ts";
import { listOf } from "./why-not-words.ts";

/** A question that {@link ClusterAnswers.resolve} had no records for, and what it said. */
export interface Unanswered {
  readonly answers: ClusterAnswers;
  readonly zone: ClusterZone;
  readonly name: Name;
  readonly type: number;
  readonly resolution: Resolution;
}

/** @returns one sentence without full stop */
export function whyNot(question: Unanswered): string {
  const { answers, zone, name, type, resolution } = question;
  const { view } = answers;
  if (zone.isReverse) {
    if (name.labelCount === zone.name.labelCount) return noSuchType(type, "SOA and NS", "the zone itself");
    if (resolution === BEGINNING_OF_ADDRESSES)
      return "addresses of the cluster have names below it, and it has no records of its own";
    if (zone.nameServer.isBelow(name))
      return "the name server of the zone has its name below it, and it has no records of its own";
    return resolution.exists
      ? noSuchType(type, "PTR", "an address that the cluster knows")
      : whyNoReverse(view, name);
  }
  const parsed = answers.parse(name, zone);
  return whyNotImported(view, parsed) ?? inWordsOf(view, whyNotIn(question, view, parsed));
}

function whyNotIn(
  { zone, name, type, resolution }: Unanswered,
  view: ClusterView,
  parsed: ClusterName,
): string {
  switch (parsed.kind) {
    case "service":
    case "endpoint":
    case "port":
    case "zonal":
      return whyNoService(view, parsed, type, resolution);
    case "namespace":
      if (!view.hasNamespace(parsed.namespace)) return whyNoNamespace(view, parsed.namespace);
      return `namespace ${parsed.namespace} exists; it has services below it and no records of its own`;
    case "pod":
    case "podNamespace":
      if (view.pods !== "disabled" && !view.hasNamespace(parsed.namespace))
        return whyNoNamespace(view, parsed.namespace);
      return whyNoPod(view, parsed, type);
    case "container":
      return "the name only holds namespaces, and has no records of its own";
    case "apex":
      return noSuchType(type, "SOA and NS", "the zone itself");
    case "dnsVersion":
      return noSuchType(type, "TXT", "dns-version");
    case "nameServer":
      return noSuchType(type, "A and AAAA", "the name server");
    case "invalid":
      return whyNoSuchForm(view, name, zone);
  }
}

/** Why the alias that a name of the cluster is leads to no answer within the cluster. */
export function whyAliasEnds(answers: ClusterAnswers, alias: Name, type: number): string {
  const seen: Name[] = [];
  let target = alias;
  while (!seen.some((name) => name.equals(target))) {
    seen.push(target);
    const zone = answers.zoneOf(target);
    if (zone === undefined || zone.isReverse) return `an alias of ${target}, which is no name of a service`;
    const resolution = answers.resolve(target, type, zone);
    if (resolution.alias === undefined) {
      const reason = whyNot({ answers, zone, name: target, type, resolution });
      return `an alias of ${target}: ${reason}`;
    }
    target = resolution.alias;
  }
  return `an alias of ${alias}, which leads in a circle`;
}

function whyNoService(view: ClusterView, parsed: ClusterName, type: number, resolution: Resolution): string {
  const { namespace, service: name } = parsed;
  if (!view.hasNamespace(namespace)) return whyNoNamespace(view, namespace, name);
  const entry = view.store.services.entry(serviceKey(namespace, name));
  const service = entry?.service;
  if (entry === undefined || service === undefined) return whyNoSuchService(view, parsed, entry);
  const full = `${namespace}/${name}`;
  switch (service.type) {
    case "externalName":
      if (parsed.kind !== "service")
        return `Service ${full} is an ExternalName, and nothing exists below such a name`;
      return `the externalName of Service ${full} is an IP address or no host name, so there is nothing to be an alias of`;
    case "clusterIP":
      if (service.clusterAddresses.length === 0) return `Service ${full} has no cluster address yet`;
      if (view.ignores(entry)) {
        return `Service ${full}: ${whyNoEndpoints(view, entry, service)}, and 'ignore empty_service' hides such services`;
      }
      break;
    case "headless":
      if (parsed.kind === "service" && !resolution.exists)
        return `Service ${full} is headless: ${whyNoEndpoints(view, entry, service)}`;
  }
  switch (parsed.kind) {
    case "zonal":
      if (service.type !== "headless")
        return `Service ${full} is not headless, and only headless services have zonal names`;
      if (!hasEndpointIn(entry, parsed))
        return `no endpoint of Service ${full} that is ready is in the topology zone ${parsed.topologyZone}`;
      if (isAddressType(type)) return `no endpoint of Service ${full} there has an ${familyOf(type)} address`;
      return noSuchType(type, "A, AAAA and SRV", "a zonal name");
    case "port":
      if (!resolution.exists) return whyNoPort(view, parsed, entry, service);
      break;
    case "endpoint":
      if (!resolution.exists) {
        const protocol = /^_(tcp|udp|sctp)$/.exec(parsed.endpoint)?.[1];
        if (protocol === undefined || (service.type === "headless" && entry.endpoints.isEmpty))
          return whyNoEndpoint(view, entry, service, parsed.endpoint);
        return `Service ${full} has no port over ${protocol.toUpperCase()} that has a name, so nothing is below _${protocol}`;
      }
      if (parsed.endpoint.startsWith("_"))
        return `${parsed.endpoint} only holds the names of ports, and has no records of its own`;
      if (isAddressType(type))
        return `endpoint ${parsed.endpoint} of Service ${full} has no ${familyOf(type)} address`;
  }
  return whyNoType(entry, service, type, parsed);
}

function hasEndpointIn({ endpoints }: IndexedService, { topologyZone, prefer }: ClusterName): boolean {
  const published = endpoints.published();
  if (prefer) return published.length > 0;
  return published.some(({ group, index }) => group.zones?.[index] === topologyZone);
}

function whyNoNamespace(view: ClusterView, namespace: string, service?: string): string {
  const { services } = view.store;
  const known = services.namespace(namespace);
  const elsewhere = service === undefined ? [] : namespacesWith(view, service);
  const hint = elsewhere.length === 0 ? "" : `; Service ${service} exists in ${namespacesText(elsewhere)}`;
  if (!view.selects(namespace)) {
    const exists = known?.exists === true ? "namespace" : "there may be a namespace";
    return `${exists} ${namespace} ${known?.exists === true ? "is" : "but it is"} not selected by 'namespaces'${hint}`;
  }
  if (known !== undefined && view.namespacesBySelector)
    return `namespace ${namespace} is not selected by 'namespace_labels'${hint}`;
  const near = nearestWord(namespace, shownNamespaces(view));
  const meant = near === undefined || near === namespace ? "" : `; is ${near} meant?`;
  const perhaps = view.namespacesBySelector ? " that 'namespace_labels' selects" : "";
  return `there is no namespace ${namespace}${perhaps}${hint === "" ? meant : hint}`;
}

function whyNoSuchService(
  view: ClusterView,
  { namespace, service: name }: ClusterName,
  entry: IndexedService | undefined,
): string {
  const elsewhere = namespacesWith(view, name);
  if (elsewhere.length > 0)
    return `Service ${name} exists in ${namespacesText(elsewhere)}, not in ${namespace}`;
  if (entry?.hasEndpointSets)
    return `there are endpoints for a Service ${name} in namespace ${namespace}, but no such Service`;
  if (name === "*" || name === "any")
    return `wildcards are not served: there is no Service ${name} in namespace ${namespace}`;
  const siblings = servicesOf(view, namespace);
  const near = nearestWord(name, siblings);
  const hint = near === undefined ? "" : `; is ${near} meant?`;
  const selected = view.objectsBySelector ? " that 'labels' selects" : "";
  return `there is no Service ${name}${selected} in namespace ${namespace}, nor in any other${hint}`;
}

function whyNoPort(view: ClusterView, asked: ClusterName, entry: IndexedService, service: Service): string {
  const { port, protocol } = asked;
  const full = `${service.namespace}/${service.name}`;
  const isHeadless = service.type === "headless";
  if (isHeadless && entry.endpoints.isEmpty)
    return `Service ${full} is headless: ${whyNoEndpoints(view, entry, service)}`;
  const ports = portsOf(entry, service);
  const named = ports.filter(({ name }) => name !== "");
  const others = named.filter(({ name }) => name === port).map((other) => other.protocol.toUpperCase());
  if (others.length > 0)
    return `port ${port} of Service ${full} is ${listOf(others)}, not ${protocol.toUpperCase()}`;
  if (named.length === 0) {
    const what = ports.length === 0 ? "has no ports" : "has ports without names only";
    return `Service ${full} ${what}, so it has no names for ports`;
  }
  return `Service ${full} has no port _${port}._${protocol}; it has ${listOf(named.map(portName))}`;
}

/** The ports that SRV records are made of: a headless service has those of its endpoints. */
function portsOf({ endpoints }: IndexedService, service: Service): readonly Port[] {
  if (service.type !== "headless") return service.ports;
  return endpoints.groups.filter((group) => endpoints.visibleCount(group) > 0).flatMap(({ ports }) => ports);
}

function portName({ name, protocol }: Port): string {
  return `_${name}._${protocol}`;
}

function whyNoType(entry: IndexedService, service: Service, type: number, { kind }: ClusterName): string {
  const full = `${service.namespace}/${service.name}`;
  if (isAddressType(type)) {
    const family = familyOf(type);
    if (service.type === "headless" && kind === "port")
      return `no endpoint of Service ${full} with this port has an ${family} address`;
    const what = service.type === "headless" ? "its endpoints have" : "it has";
    return `Service ${full} exists, but ${what} ${family === "IPv4" ? "IPv6" : "IPv4"} addresses only and no ${family} address`;
  }
  if (type === RecordType.SRV && portsOf(entry, service).length === 0)
    return `Service ${full} exists, but it has no ports`;
  return noSuchType(type, "A, AAAA and SRV", `Service ${full}`);
}

function isAddressType(type: number): boolean {
  return type === RecordType.A || type === RecordType.AAAA;
}

function familyOf(type: number): "IPv4" | "IPv6" {
  return type === RecordType.A ? "IPv4" : "IPv6";
}

function whyNoSuchForm(view: ClusterView, name: Name, zone: ClusterZone): string {
  const count = name.labelCount - zone.name.labelCount;
  const root = name.labelText(count - 1);
  for (let index = 0; index < count; index++) {
    if (name.labelText(index) === "_zone")
      return "zonal names have pin or prefer in front of _zone, and need the option 'zonal'";
  }
  if (root === "svc" || root === "pod")
    return `no object has a name of ${countOf(count, "label")} in front of ${zone.name}`;
  if (count === 2) {
    const [service, namespace] = [name.labelText(0), name.labelText(1)];
    if (
      view.store.services.entry(serviceKey(namespace, service))?.service !== undefined &&
      view.hasNamespace(namespace)
    )
      return `Service ${namespace}/${service} has its name below svc: ${service}.${namespace}.svc.${zone.name}`;
  }
  if (count === 1) {
    const elsewhere = namespacesWith(view, root);
    const [namespace] = elsewhere;
    if (namespace !== undefined)
      return `Service ${root} exists in ${namespacesText(elsewhere)}; its name is ${root}.${namespace}.svc.${zone.name}`;
  }
  return `names of the cluster stand below svc.${zone.name} or pod.${zone.name}, and this one does not`;
}

/** Namespaces that are shown and have a service of this name, sorted. */
function namespacesWith(view: ClusterView, service: string): string[] {
  const found: string[] = [];
  for (const entry of view.store.services.entries())
    if (entry.name === service && entry.hasService && view.shows(entry)) found.push(entry.namespace.name);
  return found.sort();
}

function shownNamespaces(view: ClusterView): string[] {
  return Array.from(view.store.services.existingNamespaces(), ({ name }) => name).filter((name) =>
    view.hasNamespace(name),
  );
}

function servicesOf(view: ClusterView, namespace: string): string[] {
  const entries = view.store.services.namespace(namespace)?.services() ?? [];
  return [...entries].filter(({ service }) => service !== undefined).map(({ name }) => name);
}

function namespacesText(namespaces: readonly string[]): string {
  return `${namespaces.length === 1 ? "namespace" : "namespaces"} ${listOf(namespaces)}`;
}

function noSuchType(type: number, types: string, owner: string): string {
  return `there are no ${recordTypeName(type)} records: ${owner} has ${types} at most`;
}
