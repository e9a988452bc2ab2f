/** The clusters of the configuration in force: the age of their data, and their names. */
import { CLUSTER } from "../kubernetes/answers/cluster-service.ts";
import type { ClusterView } from "../kubernetes/answers/cluster-view.ts";
import type { EndpointGroup } from "../kubernetes/objects/objects.ts";
import type { IndexedService } from "../kubernetes/store/services/indexed-service.ts";
import { formatIpAddress } from "../lib/net/ip-address.ts";
import type { PlacedPlugin } from "../plugin/contract/plugin-instance.ts";
import type { ServerControl } from "../plugin/contract/site.ts";
import type { ClusterRow, NamesView, ServiceRow } from "./api-types.ts";

interface ShownCluster {
  readonly domain: string;
  readonly view: ClusterView;
  readonly plugin: PlacedPlugin;
}

export function clusterRows(control: ServerControl): ClusterRow[] {
  return shownClusters(control).map(({ domain, view, plugin }) => {
    const ages = [...view.store.kinds].map((kind) => view.store.age(kind));
    const oldest = ages.reduce(
      (oldest, age) => (oldest === undefined || age === undefined ? undefined : Math.max(oldest, age)),
      0,
    );
    const { serviceCount, hasIpv4, hasIpv6 } = view.store.services;
    return {
      domain,
      awaited: [...(plugin.instance.cluster?.awaited ?? [])],
      services: serviceCount,
      // A single-stack Service says little about a dual-stack cluster: endpoints count as well.
      families: [...(hasIpv4 ? ["IPv4"] : []), ...(hasIpv6 ? ["IPv6"] : [])],
      age: oldest === undefined ? null : Math.round(oldest),
      state: [...(plugin.instance.describeState?.() ?? [])],
    };
  });
}

export interface NamesQuestion {
  /** Restricts the services to this namespace. */
  readonly namespace: string;
  /** Restricts the services to those whose `service.namespace` contains this text. */
  readonly text: string;
}

const MOST_SERVICES = 200;
const MOST_ENDPOINTS = 100;

/** Without a filter this is the overview: the first services in the order of their namespaces, without endpoints. */
export function namesView(control: ServerControl, { namespace, text }: NamesQuestion): NamesView {
  const clusters = shownClusters(control).map((cluster) => ({
    ...cluster,
    namespaces: namespacesOf(cluster.view),
  }));
  const services: ServiceRow[] = [];
  let more = false;
  const add = (domain: string, entry: IndexedService, isBrief = false): void => {
    if (services.length < MOST_SERVICES) services.push(serviceRow(domain, entry, isBrief));
    else more = true;
  };
  const wanted = text.toLowerCase();
  for (const { domain, view, namespaces } of clusters) {
    if (namespace === "" && wanted === "") {
      for (const { name } of namespaces) {
        if (more) break;
        for (const entry of firstServices(view, name, MOST_SERVICES + 1)) add(domain, entry, true);
      }
      continue;
    }
    for (const entry of view.store.services.entries()) {
      if (!view.shows(entry)) continue;
      if (namespace !== "" && entry.namespace.name !== namespace) continue;
      if (entry.key.includes(wanted)) add(domain, entry);
    }
  }
  services.sort(
    (one, other) =>
      compare(one.domain, other.domain) ||
      compare(one.namespace, other.namespace) ||
      compare(one.name, other.name),
  );
  return { clusters: clusters.map(({ domain, namespaces }) => ({ domain, namespaces })), services, more };
}

function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

function firstServices(view: ClusterView, namespace: string, most: number): IndexedService[] {
  const entries = [...(view.store.services.namespace(namespace)?.services() ?? [])];
  return entries
    .filter((entry) => view.shows(entry))
    .sort((one, other) => compare(one.name, other.name))
    .slice(0, most);
}

function namespacesOf(view: ClusterView): { name: string; services: number }[] {
  const names: { name: string; services: number }[] = [];
  for (const { name } of view.store.objects("namespaces")) {
    if (!view.hasNamespace(name)) continue;
    names.push({ name, services: view.store.services.namespace(name)?.size ?? 0 });
  }
  return names.sort((one, other) => compare(one.name, other.name));
}

/** @param isBrief leaves out its endpoints */
function serviceRow(domain: string, entry: IndexedService, isBrief: boolean): ServiceRow {
  const { service, endpoints } = entry;
  const { groups } = endpoints;
  const ready = groups.reduce((sum, { readyCount }) => sum + readyCount, 0);
  const all = groups.reduce((sum, group) => sum + group.count, 0);
  return {
    domain,
    namespace: entry.namespace.name,
    name: entry.name,
    type: service?.type ?? "missing",
    fqdn: `${entry.name}.${entry.namespace.name}.svc.${domain}.`,
    addresses: (service?.clusterAddresses ?? []).map((octets) => formatIpAddress(octets)),
    externalName: service?.externalName ?? "",
    ports: (service?.ports ?? []).map(
      ({ name, number, protocol }) => `${name === "" ? "" : `${name} `}${number}/${protocol}`,
    ),
    ready,
    notReady: all - ready,
    publishNotReady: service?.publishNotReadyAddresses ?? false,
    endpoints: isBrief ? [] : groups.flatMap(endpointRows).slice(0, MOST_ENDPOINTS),
  };
}

function endpointRows(group: EndpointGroup): ServiceRow["endpoints"] {
  const { addresses, addressLength, count: size, readyCount, labels } = group;
  return Array.from({ length: Math.min(size, MOST_ENDPOINTS) }, (_, index) => ({
    address: formatIpAddress(addresses.subarray(index * addressLength, (index + 1) * addressLength)),
    label: labels?.[index] ?? "",
    ready: index < readyCount,
  }));
}

/** One for each directive that serves a cluster, in the order of the Corefile. */
function shownClusters({ view }: ServerControl): ShownCluster[] {
  const plugins = view?.blocks().flatMap((block) => block.plugins) ?? [];
  return plugins.flatMap((plugin) => {
    const [service] = CLUSTER.among([plugin]);
    const domain = plugin.instance.cluster?.domain ?? "";
    return service === undefined ? [] : [{ domain, view: service.view, plugin }];
  });
}
