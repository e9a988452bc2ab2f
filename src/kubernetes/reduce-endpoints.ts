/** EndpointSlice (discovery.k8s.io/v1 and v1beta1) and Endpoints (v1) -> {@link EndpointSet}. Nothing here throws. */
import { parseIpAddress } from "../lib/ip-address.ts";
import { dashedAddress } from "./addresses.ts";
import { listMember, member, textMember } from "./json.ts";
import { isDnsLabel } from "./names.ts";
import type { EndpointGroup, EndpointSet, Port, Reduced } from "./objects.ts";
import { notALabel, type ReduceOptions, readIdentity, readPorts } from "./reduce.ts";

/** The label that says which service a slice belongs to; the slice's own name says nothing. */
export const SERVICE_NAME_LABEL = "kubernetes.io/service-name";

/** Likewise of a slice that belongs to an import from other clusters (KEP-1645), and the cluster that its endpoints are in. */
export const IMPORT_NAME_LABEL = "multicluster.kubernetes.io/service-name";
export const SOURCE_CLUSTER_LABEL = "multicluster.kubernetes.io/source-cluster";

/** One address of one endpoint, on its way into a group. */
export interface EndpointAddress {
  readonly octets: Uint8Array;
  readonly ready: boolean;
  /** A DNS label, or empty; with that of its cluster behind it where the endpoint is imported. */
  readonly label: string;
  /** Lower case, or empty. */
  readonly zone: string;
}

export function reduceEndpointSlice(value: unknown, options: ReduceOptions): Reduced<EndpointSet> {
  const service = labelOf(value, SERVICE_NAME_LABEL);
  if (service === "") {
    const problem = `the label ${SERVICE_NAME_LABEL} is missing`;
    return labelOf(value, IMPORT_NAME_LABEL) === "" ? { problem } : { problem, isForeign: true };
  }
  return reduceSlice(value, SERVICE_NAME_LABEL, "", options);
}

/**
 * A slice of an import: its endpoints are named after their cluster too, `db-0.east`. One that does not say which cluster that is has
 * endpoints with names as in the cluster's own zone.
 */
export function reduceImportedSlice(value: unknown, options: ReduceOptions): Reduced<EndpointSet> {
  if (labelOf(value, IMPORT_NAME_LABEL) === "")
    return { problem: `the label ${IMPORT_NAME_LABEL} is missing`, isForeign: true };
  const cluster = labelOf(value, SOURCE_CLUSTER_LABEL);
  if (cluster !== "" && !isDnsLabel(cluster))
    return { problem: notALabel(`the label ${SOURCE_CLUSTER_LABEL}`, cluster) };
  return reduceSlice(value, IMPORT_NAME_LABEL, cluster, options);
}

function labelOf(value: unknown, label: string): string {
  return textMember(member(member(value, "metadata"), "labels"), label);
}

function reduceSlice(
  value: unknown,
  serviceLabel: string,
  cluster: string,
  options: ReduceOptions,
): Reduced<EndpointSet> {
  const identity = readSliceIdentity(value, options);
  if ("problem" in identity) return identity;
  const { namespace, name } = identity.object;
  const service = labelOf(value, serviceLabel);
  if (!isDnsLabel(service)) return { problem: notALabel(`the label ${serviceLabel}`, service) };

  const ports = readPorts(listMember(value, "ports"), options);
  const addresses: EndpointAddress[] = [];
  // A slice of host names (rule 25) has nothing that an address record could hold.
  if (textMember(value, "addressType") !== "FQDN") {
    for (const endpoint of listMember(value, "endpoints")) {
      const ready = member(member(endpoint, "conditions"), "ready") !== false;
      const own = readLabel(endpoint, options);
      const zone = readZone(endpoint, options);
      for (const text of listMember(endpoint, "addresses")) {
        const octets = typeof text === "string" ? parseIpAddress(text) : undefined;
        if (octets === undefined) continue;
        const label = cluster === "" ? own : `${own || dashed(octets)}.${cluster}`;
        addresses.push({ octets, ready, label, zone });
      }
    }
  }
  return {
    object: { namespace, name, service: options.shared.text(service), groups: packGroups(addresses, ports) },
  };
}

export function reduceEndpoints(value: unknown, options: ReduceOptions): Reduced<EndpointSet> {
  const identity = readIdentity(value, options);
  if ("problem" in identity) return identity;
  const { namespace, name } = identity.object;
  const groups: EndpointGroup[] = [];
  for (const subset of listMember(value, "subsets")) {
    const addresses = [
      ...readSubsetAddresses(listMember(subset, "addresses"), true, options),
      ...readSubsetAddresses(listMember(subset, "notReadyAddresses"), false, options),
    ];
    groups.push(...packGroups(addresses, readPorts(listMember(subset, "ports"), options)));
  }
  return { object: { namespace, name, service: name, groups } };
}

/** Packs addresses that share their ports: a group for each family that occurs, what is ready at its front. */
export function packGroups(addresses: readonly EndpointAddress[], ports: readonly Port[]): EndpointGroup[] {
  const groups: EndpointGroup[] = [];
  for (const addressLength of [4, 16] as const) {
    const family = addresses.filter(({ octets }) => octets.length === addressLength);
    if (family.length === 0) continue;
    const ready = family.filter((address) => address.ready);
    const ordered = [...ready, ...family.filter((address) => !address.ready)];
    const packed = new Uint8Array(ordered.length * addressLength);
    for (const [index, { octets }] of ordered.entries()) packed.set(octets, index * addressLength);
    groups.push({
      addressLength,
      addresses: packed,
      count: ordered.length,
      readyCount: ready.length,
      labels: textsUnlessEmpty(ordered.map(({ label }) => label)),
      zones: textsUnlessEmpty(ordered.map(({ zone }) => zone)),
      ports,
    });
  }
  return groups;
}

/** A slice's own name never shows in DNS and may hold dots. */
function readSliceIdentity(
  value: unknown,
  options: ReduceOptions,
): Reduced<{ namespace: string; name: string }> {
  const metadata = member(value, "metadata");
  const namespace = textMember(metadata, "namespace");
  const name = textMember(metadata, "name");
  if (name === "") return { problem: notALabel("metadata.name", name) };
  if (!isDnsLabel(namespace)) return { problem: notALabel("metadata.namespace", namespace) };
  return { object: { namespace: options.shared.text(namespace), name } };
}

function readSubsetAddresses(
  values: readonly unknown[],
  ready: boolean,
  options: ReduceOptions,
): EndpointAddress[] {
  const addresses: EndpointAddress[] = [];
  for (const value of values) {
    const octets = parseIpAddress(textMember(value, "ip"));
    if (octets === undefined) continue;
    addresses.push({ octets, ready, label: readLabel(value, options), zone: "" });
  }
  return addresses;
}

/** The endpoint's `hostname`, or with the option the name of its pod, as long as that is one label (rule 21). */
function readLabel(endpoint: unknown, options: ReduceOptions): string {
  const hostname = textMember(endpoint, "hostname");
  if (isDnsLabel(hostname)) return hostname;
  if (!options.endpointPodNames) return "";
  const target = member(endpoint, "targetRef");
  const kind = textMember(target, "kind");
  const podName = textMember(target, "name");
  return (kind === "" || kind === "Pod") && isDnsLabel(podName) ? podName : "";
}

function readZone(endpoint: unknown, options: ReduceOptions): string {
  if (!options.zones) return "";
  const zone =
    textMember(endpoint, "zone") || textMember(member(endpoint, "topology"), "topology.kubernetes.io/zone");
  return options.shared.text(zone.toLowerCase());
}

function dashed(octets: Uint8Array): string {
  return dashedAddress(octets, 0, octets.length === 4 ? 4 : 16);
}

function textsUnlessEmpty(texts: readonly string[]): readonly string[] | undefined {
  return texts.some((text) => text !== "") ? texts : undefined;
}
