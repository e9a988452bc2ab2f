/**
 * The cluster as the tree of records that kube-dns kept: domain, `svc`, namespace, service, protocol, port (docs/spec/kube-dns.md#record-tree and docs/spec/kube-dns.md#lookup).
 * Nothing is kept here; each question walks over the store.
 */
import { formatIpAddress } from "../../lib/net/ip-address.ts";
import type { Port } from "../objects/objects.ts";
import { labelAt } from "../store/endpoints/endpoint-block.ts";
import type { IndexedService } from "../store/services/indexed-service.ts";
import type { ClusterView } from "./cluster-view.ts";
import { kubeDnsLabel } from "./kube-dns-label.ts";

/** One record, before it is known what is asked for. */
export interface KubeDnsEntry {
  /** An address, or the labels of a name. */
  readonly host: Uint8Array | readonly string[];
  /** Whether the labels of {@link host} stand in front of the zone. */
  readonly isInside: boolean;
  /** What is behind the name {@link host}, where that is known. */
  readonly address?: Uint8Array | undefined;
  /** 0 for a record that is no port. */
  readonly port: number;
  /** Its own label, below the node that it stands at. */
  readonly label: string;
  /** Labels of its own name in front of the zone. */
  readonly name: readonly string[];
}

/** A place of the tree. `_tcp` and `_http` are labels as they stand in names. */
interface Node {
  readonly children: (label: string) => readonly Node[];
  readonly entries: () => Iterable<KubeDnsEntry>;
  /** The record of this label, where looking for it among all of them would be slow. */
  readonly leaf?: (label: string) => KubeDnsEntry | undefined;
}

/** What stands for every child. `any` does not. */
const WILDCARD = "*";
/** Records of one answer: more fit into no message. */
const MAX_ENTRIES = 1_000;
const NO_ENTRIES: readonly KubeDnsEntry[] = [];
const NO_NODES: readonly Node[] = [];

/** Whether a name's answer rests on more than the one service that it names. */
export function spansServices(labels: readonly string[]): boolean {
  return labels.length < 3 || labels.includes(WILDCARD);
}

/**
 * The records at a name. None for a name that does not exist: there are no names without records.
 * @param labels in front of the zone, in lower case
 */
export function kubeDnsEntries(view: ClusterView, labels: readonly string[]): readonly KubeDnsEntry[] {
  const path = labels.toReversed();
  const last = path.pop();
  if (last === undefined) return NO_ENTRIES;
  let nodes: readonly Node[] = [rootNode(view)];
  for (const label of path) nodes = nodes.flatMap((node) => node.children(label));
  const found: KubeDnsEntry[] = [];
  for (const node of nodes) {
    for (const entry of entriesAt(node, last)) {
      found.push(entry);
      if (found.length === MAX_ENTRIES) return found;
    }
  }
  return found;
}

/** All records of one service, those of its ports included. */
export function* kubeDnsEntriesOf(entry: IndexedService): Iterable<KubeDnsEntry> {
  const external = externalEntry(entry);
  if (external !== undefined) yield external;
  if (!hasNode(entry)) return;
  yield* serviceNode(entry).entries();
  const ports = new Set<string>();
  for (const { ports: own } of addressesOf(entry))
    for (const { name, protocol } of own) if (name !== "") ports.add(`${protocol}/${name}`);
  for (const port of ports) {
    const [protocol = "", name = ""] = port.split("/");
    yield* portNode(entry, protocol, name).entries();
  }
}

/** The record whose own name this is, if there is one (queries for CNAME). */
export function kubeDnsLeaf(view: ClusterView, labels: readonly string[]): KubeDnsEntry | undefined {
  const [first] = labels;
  return kubeDnsEntries(view, labels).find(
    ({ label, name }) => label === first && name.length === labels.length,
  );
}

function* entriesAt(node: Node, label: string): Iterable<KubeDnsEntry> {
  if (label === WILDCARD) yield* node.entries();
  else {
    const leaf = node.leaf === undefined ? firstNamed(node.entries(), label) : node.leaf(label);
    if (leaf !== undefined) yield leaf;
    else for (const child of node.children(label)) yield* child.entries();
  }
}

function firstNamed(entries: Iterable<KubeDnsEntry>, label: string): KubeDnsEntry | undefined {
  for (const entry of entries) if (entry.label === label) return entry;
  return undefined;
}

function rootNode(view: ClusterView): Node {
  const services: Node = {
    children: (label) => namespaceNodes(view, label),
    entries: () => NO_ENTRIES,
  };
  return {
    children: (label) => (label === "svc" || label === WILDCARD ? [services] : NO_NODES),
    entries: () => NO_ENTRIES,
  };
}

function namespaceNodes(view: ClusterView, label: string): readonly Node[] {
  if (label !== WILDCARD) return view.selects(label) ? [namespaceNode(view, label)] : NO_NODES;
  const names = new Set<string>();
  for (const { namespace, service } of view.store.services.entries())
    if (service !== undefined && view.selects(namespace.name)) names.add(namespace.name);
  return Array.from(names, (name) => namespaceNode(view, name));
}

function namespaceNode(view: ClusterView, namespace: string): Node {
  const { services } = view.store;
  return {
    children(label) {
      if (label !== WILDCARD) {
        const entry = services.find(namespace, label);
        return entry !== undefined && hasNode(entry) ? [serviceNode(entry)] : NO_NODES;
      }
      const nodes: Node[] = [];
      for (const entry of services.entries())
        if (entry.namespace.name === namespace && hasNode(entry)) nodes.push(serviceNode(entry));
      return nodes;
    },
    *entries() {
      for (const entry of services.entries()) {
        const external = entry.namespace.name === namespace ? externalEntry(entry) : undefined;
        if (external !== undefined) yield external;
      }
    },
    leaf(label) {
      const entry = services.find(namespace, label);
      return entry && externalEntry(entry);
    },
  };
}

function hasNode({ service }: IndexedService): boolean {
  return service !== undefined && service.type !== "externalName";
}

/** An ExternalName is a record of its namespace and no place of its own. */
function externalEntry({ service, name, namespace }: IndexedService): KubeDnsEntry | undefined {
  if (service?.type !== "externalName" || service.externalName === "") return undefined;
  return {
    host: service.externalName.split("."),
    isInside: false,
    port: 0,
    label: name,
    name: [name, namespace.name, "svc"],
  };
}

function serviceNode(entry: IndexedService): Node {
  return {
    children: (label) => {
      // Labels of protocols are not meant by a wildcard.
      if (!label.startsWith("_")) return NO_NODES;
      return [
        {
          children: (port) =>
            port.startsWith("_") ? [portNode(entry, label.slice(1), port.slice(1))] : NO_NODES,
          entries: () => NO_ENTRIES,
        },
      ];
    },
    *entries() {
      for (const { host, label } of addressesOf(entry))
        yield { host, isInside: true, port: 0, label, name: [label, ...nameOf(entry)] };
    },
  };
}

function portNode(entry: IndexedService, protocol: string, name: string): Node {
  const fits = (port: Port) => name !== "" && port.name === name && port.protocol === protocol;
  const above = [`_${name}`, `_${protocol}`, ...nameOf(entry)];
  return {
    children: () => NO_NODES,
    *entries() {
      const isHeadless = entry.type === "headless";
      for (const { host: octets, label, ports } of addressesOf(entry)) {
        const host = isHeadless ? [label, ...nameOf(entry)] : nameOf(entry);
        const address = isHeadless ? octets : undefined;
        for (const port of ports) {
          if (!fits(port)) continue;
          yield { host, isInside: true, address, port: port.number, label, name: [label, ...above] };
        }
      }
    },
  };
}

interface ServiceAddress {
  readonly host: Uint8Array;
  readonly label: string;
  readonly ports: readonly Port[];
}

/** Cluster addresses, or the published endpoints of a headless service. */
function* addressesOf({ service, endpoints }: IndexedService): Iterable<ServiceAddress> {
  if (service === undefined) return;
  if (service.type !== "headless") {
    for (const host of service.clusterAddresses)
      yield { host, label: kubeDnsLabel(formatIpAddress(host)), ports: service.ports };
    return;
  }
  for (const { group, index } of endpoints.published()) {
    const start = index * group.addressLength;
    const host = group.addresses.slice(start, start + group.addressLength);
    yield { host, label: labelAt(group, index) || kubeDnsLabel(formatIpAddress(host)), ports: group.ports };
  }
}

function nameOf({ name, namespace }: IndexedService): string[] {
  return [name, namespace.name, "svc"];
}
