/** The objects of a store as lines of JSON, and back. All but endpoints look as the API writes them, and are read as such. */
import { formatIpAddress, parseIpAddress } from "../../lib/net/ip-address.ts";
import { formatAddressKey } from "../objects/addresses.ts";
import { listMember, member, textMember } from "../objects/json.ts";
import { isDnsLabel } from "../objects/names.ts";
import type {
  EndpointGroup,
  EndpointSet,
  Kind,
  ObjectOfKind,
  Pod,
  Reduced,
  Service,
} from "../objects/objects.ts";
import {
  type ReduceOptions,
  readPorts,
  reduceNamespace,
  reducePod,
  reduceService,
} from "../objects/reduce.ts";
import { type EndpointAddress, packGroups } from "../objects/reduce-endpoints.ts";
import type { ClusterStore } from "../store/store.ts";

type SnapshotLine = Readonly<Record<string, unknown>>;

/** Everything that the store holds, an object at a time, and then what is imported from other clusters. */
export function* snapshotObjects(
  store: ClusterStore,
  imports?: ClusterStore,
): Generator<SnapshotLine, void, undefined> {
  yield* objectsOf(store);
  if (imports === undefined) return;
  for (const service of imports.services.services()) yield { imported: true, ...describeService(service) };
  for (const set of imports.services.endpointSets()) yield { imported: true, ...describeEndpoints(set) };
}

/** Whether a line is about what is imported from other clusters. */
export function isImported(line: unknown): boolean {
  return member(line, "imported") === true;
}

function* objectsOf(store: ClusterStore): Generator<SnapshotLine, void, undefined> {
  for (const { name } of store.services.existingNamespaces()) yield { kind: "Namespace", metadata: { name } };
  for (const service of store.services.services()) yield describeService(service);
  for (const set of store.services.endpointSets()) yield describeEndpoints(set);
  for (const pod of store.pods.pods()) yield describePod(pod);
}

/** What a line says: an object of a kind, or why there is none. */
export type SnapshotObject = {
  readonly [K in Kind]: { readonly kind: K; readonly object: ObjectOfKind[K] };
}[Kind];

export function readSnapshotObject(
  value: unknown,
  options: ReduceOptions,
): SnapshotObject | { readonly problem: string } {
  switch (textMember(value, "kind")) {
    case "Namespace":
      return ofKind("namespaces", reduceNamespace(value));
    case "Service":
      return ofKind("services", reduceService(value, options));
    case "EndpointSet":
      return ofKind("endpoints", readEndpoints(value, options));
    case "Pod":
      return ofKind("pods", reducePod(value, options));
    default:
      return { problem: "not an object of a snapshot" };
  }
}

function ofKind<K extends Kind>(kind: K, reduced: Reduced<ObjectOfKind[K]>) {
  return "problem" in reduced ? reduced : { kind, object: reduced.object };
}

function describeService(service: Service): Readonly<Record<string, unknown>> {
  const { namespace, name, type, clusterAddresses, externalName, ports, publishNotReadyAddresses } = service;
  const clusterIPs =
    type === "headless" ? ["None"] : clusterAddresses.map((octets) => formatIpAddress(octets));
  return {
    kind: "Service",
    metadata: { namespace, name },
    spec: {
      ...(type === "externalName" ? { type: "ExternalName", externalName } : { clusterIPs }),
      ports: ports.map(({ number, ...port }) => ({ ...port, port: number })),
      publishNotReadyAddresses,
      externalIPs: service.externalAddresses,
    },
  };
}

function describePod(pod: Pod): Readonly<Record<string, unknown>> {
  const { namespace, name, addresses, labels, hostNetwork } = pod;
  return {
    kind: "Pod",
    metadata: { namespace, name, labels: Object.fromEntries(labels) },
    ...(hostNetwork && { spec: { hostNetwork } }),
    status: { podIPs: addresses.map((key) => ({ ip: formatAddressKey(key) })) },
  };
}

function describeEndpoints({
  namespace,
  name,
  service,
  groups,
}: EndpointSet): Readonly<Record<string, unknown>> {
  return { kind: "EndpointSet", metadata: { namespace, name }, service, groups: groups.map(describeGroup) };
}

function describeGroup(group: EndpointGroup): Readonly<Record<string, unknown>> {
  const { addresses, addressLength, count, readyCount, labels, zones, ports } = group;
  return {
    addresses: Array.from({ length: count }, (_, index) =>
      formatIpAddress(addresses.subarray(index * addressLength, (index + 1) * addressLength)),
    ),
    readyCount,
    ...(labels !== undefined && { labels }),
    ...(zones !== undefined && { zones }),
    ports: ports.map(({ number, ...port }) => ({ ...port, port: number })),
  };
}

function readEndpoints(value: unknown, options: ReduceOptions): Reduced<EndpointSet> {
  const { shared } = options;
  const metadata = member(value, "metadata");
  const namespace = textMember(metadata, "namespace");
  const name = textMember(metadata, "name");
  const service = textMember(value, "service");
  if (name === "" || !isDnsLabel(namespace) || !isDnsLabel(service))
    return { problem: "endpoints without names" };
  const groups = listMember(value, "groups").flatMap((group) =>
    packGroups(readAddresses(group, options), readPorts(listMember(group, "ports"), options)),
  );
  return { object: { namespace: shared.text(namespace), name, service: shared.text(service), groups } };
}

function readAddresses(group: unknown, options: ReduceOptions): EndpointAddress[] {
  const readyCount = member(group, "readyCount");
  const labels = listMember(group, "labels");
  const zones = listMember(group, "zones");
  return listMember(group, "addresses").flatMap((text, index) => {
    const octets = typeof text === "string" ? parseIpAddress(text) : undefined;
    if (octets === undefined) return [];
    const label = labels[index];
    const zone = zones[index];
    return {
      octets,
      ready: typeof readyCount === "number" && index < readyCount,
      label: typeof label === "string" && label.split(".").every(isDnsLabel) ? label : "",
      zone: typeof zone === "string" ? options.shared.text(zone) : "",
    };
  });
}
