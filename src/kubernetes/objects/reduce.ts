/**
 * Namespace, Service and Pod as the API writes them in JSON -> the reduced objects. Missing, null and unknown fields
 * are used as far as they go; nothing here throws.
 */
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { addressKey, equalOctets } from "./addresses.ts";
import { listMember, member, textEntries, textMember } from "./json.ts";
import { isDnsLabel, readExternalName } from "./names.ts";
import type { Identity, Namespace, Pod, Port, Protocol, Reduced, Service } from "./objects.ts";
import type { ServiceEntryRules } from "./reduce-service-entries.ts";
import { NO_LABELS, type SharedValues } from "./shared-values.ts";

/** What of the objects is wanted beyond the ground rules. Each costs memory for every endpoint or pod. */
export interface ReduceOptions {
  /** The option `endpoint_pod_names`: an endpoint without hostname is named after its pod. */
  readonly endpointPodNames?: boolean;
  /** The option `zonal`: keep each endpoint's topology zone. */
  readonly zones?: boolean;
  /** Keep the labels of pods, for the metadata of the client. */
  readonly podLabels?: boolean;
  /** Keep the addresses under which services are known outside of the cluster (`k8s_external`). */
  readonly externalAddresses?: boolean;
  /** Keep the ServiceEntries of Istio, and what becomes of hosts without addresses. */
  readonly serviceEntries?: ServiceEntryRules;
  /** Where equal texts meet. One for all objects of a store. */
  readonly shared: SharedValues;
}

export function reduceNamespace(value: unknown): Reduced<Namespace> {
  const name = textMember(member(value, "metadata"), "name");
  if (!isDnsLabel(name)) return { problem: notALabel("metadata.name", name) };
  return { object: { namespace: "", name } };
}

export function reduceService(value: unknown, options: ReduceOptions): Reduced<Service> {
  const identity = readIdentity(value, options);
  if ("problem" in identity) return identity;
  const spec = member(value, "spec");
  return serviceOf({
    ...identity.object,
    type: textMember(spec, "type"),
    clusterAddresses: clusterIpTexts(spec),
    externalName: textMember(spec, "externalName"),
    ports: readPorts(listMember(spec, "ports"), options),
    publishNotReadyAddresses: publishesNotReadyAddresses(value),
    ...(options.externalAddresses && { externalAddresses: readExternalAddresses(value) }),
  });
}

/** A service as it stands in the API. */
export interface WrittenService {
  readonly namespace: string;
  readonly name: string;
  readonly type: string;
  /** Texts: addresses, or "None". */
  readonly clusterAddresses: readonly string[];
  readonly externalName: string;
  readonly ports: readonly Port[];
  readonly publishNotReadyAddresses: boolean;
  readonly externalAddresses?: readonly string[];
}

export function serviceOf(written: WrittenService): Reduced<Service> {
  const { namespace, name, type, externalName, ports, publishNotReadyAddresses, externalAddresses } = written;
  const isAlias = type === "ExternalName";
  const texts = isAlias ? NO_TEXTS : written.clusterAddresses;
  const isHeadless = texts[0] === "None";
  const clusterAddresses = isHeadless ? NO_ADDRESSES : readAddresses(texts);
  if (!isHeadless && texts.length > 0 && clusterAddresses.length === 0) {
    return { problem: `spec.clusterIP "${texts[0]}" is not an IP address` };
  }
  // Written out, and not put together from parts: an object that grows member by member takes twice the memory.
  return {
    object: {
      namespace,
      name,
      type: isAlias ? "externalName" : isHeadless ? "headless" : "clusterIP",
      clusterAddresses,
      externalName: isAlias ? (readExternalName(externalName) ?? "") : "",
      ports,
      publishNotReadyAddresses,
      externalAddresses: externalAddresses ?? NO_TEXTS,
    },
  };
}

/** A pod that is finished, on its way out or without address comes out with no addresses (docs/spec/kubernetes-dns.md#pod-modes). */
export function reducePod(value: unknown, options: ReduceOptions): Reduced<Pod> {
  const metadata = member(value, "metadata");
  const namespace = textMember(metadata, "namespace");
  const name = textMember(metadata, "name");
  if (name === "") return { problem: "metadata.name is missing" };
  if (!isDnsLabel(namespace)) return { problem: notALabel("metadata.namespace", namespace) };
  const labels = options.podLabels ? options.shared.labelSet(textEntries(metadata, "labels")) : NO_LABELS;
  const addresses = isPodRunning(value) ? podAddresses(value).map((octets) => addressKey(octets)) : [];
  const pod: Pod = { namespace: options.shared.text(namespace), name, addresses, labels };
  return { object: isOnHostNetwork(value) ? { ...pod, hostNetwork: true } : pod };
}

function isOnHostNetwork(pod: unknown): boolean {
  return member(member(pod, "spec"), "hostNetwork") === true;
}

/** Whether a pod may have records: not finished, not lost, not being deleted. */
export function isPodRunning(pod: unknown): boolean {
  const phase = textMember(member(pod, "status"), "phase");
  if (phase === "Succeeded" || phase === "Failed" || phase === "Unknown") return false;
  const deletion = member(member(pod, "metadata"), "deletionTimestamp");
  return deletion === undefined || deletion === null;
}

/** Every address that the pod's status names, `podIPs` first and `podIP` where that is all there is. */
export function podAddresses(pod: unknown): readonly Uint8Array[] {
  const status = member(pod, "status");
  const texts = listMember(status, "podIPs").map((entry) => textMember(entry, "ip"));
  return readAddresses([...texts, textMember(status, "podIP")]);
}

/** The valid addresses among the texts, without duplicates. */
export function readAddresses(texts: readonly string[]): readonly Uint8Array[] {
  if (texts.length === 0) return NO_ADDRESSES;
  const addresses: Uint8Array[] = [];
  for (const text of texts) {
    const octets = parseIpAddress(text);
    if (octets === undefined || addresses.some((known) => equalOctets(known, octets))) continue;
    addresses.push(octets);
  }
  // What was pushed to has room for 16 more; most services have one address.
  return addresses.slice();
}

/** `metadata.namespace` and `metadata.name`, both DNS labels. */
export function readIdentity(value: unknown, options: ReduceOptions): Reduced<Identity> {
  const metadata = member(value, "metadata");
  const namespace = textMember(metadata, "namespace");
  const name = textMember(metadata, "name");
  if (!isDnsLabel(name)) return { problem: notALabel("metadata.name", name) };
  if (!isDnsLabel(namespace)) return { problem: notALabel("metadata.namespace", namespace) };
  return { object: { namespace: options.shared.text(namespace), name: options.shared.text(name) } };
}

export function notALabel(field: string, text: string): string {
  return text === "" ? `${field} is missing or not text` : `${field} "${text}" is not a DNS label`;
}

/** Ports that a SRV record can name. One without a number (any port, or none) is left out (docs/spec/kubernetes-dns.md#portless-slices). */
export function readPorts(values: readonly unknown[], options: ReduceOptions): readonly Port[] {
  const ports: Port[] = [];
  for (const value of values) {
    const number = member(value, "port");
    const port = portOf(
      typeof number === "number" ? number : MISSING_PORT,
      textMember(value, "name"),
      textMember(value, "protocol"),
      options.shared,
    );
    if (port !== undefined) ports.push(port);
  }
  return options.shared.portList(ports);
}

/** The number of a port that has none. */
export const MISSING_PORT = 0;

/** @param protocol TCP where it is not given @returns undefined for one that no SRV record can name */
export function portOf(
  number: number,
  name: string,
  protocol: string,
  shared: SharedValues,
): Port | undefined {
  if (!Number.isInteger(number) || number < 1 || number > 65_535) return undefined;
  const known = protocolOf(protocol);
  if (known === undefined) return undefined;
  return { name: shared.text(name.toLowerCase()), number, protocol: known };
}

/** The protocol of a port; TCP where it is not given, undefined for one that DNS has no label for. */
export function readProtocol(port: unknown): Protocol | undefined {
  return protocolOf(textMember(port, "protocol"));
}

function protocolOf(text: string): Protocol | undefined {
  const protocol = text.toLowerCase();
  if (protocol === "") return "tcp";
  return protocol === "tcp" || protocol === "udp" || protocol === "sctp" ? protocol : undefined;
}

export const OLD_PUBLISH_ANNOTATION = "service.alpha.kubernetes.io/tolerate-unready-endpoints";

function publishesNotReadyAddresses(service: unknown): boolean {
  if (member(member(service, "spec"), "publishNotReadyAddresses") === true) return true;
  const annotation = member(member(member(service, "metadata"), "annotations"), OLD_PUBLISH_ANNOTATION);
  return annotation === "true" || annotation === true;
}

/** `clusterIPs`, or `clusterIP` of an API server that knows one family only (docs/spec/kubernetes-dns.md#cluster-ips). */
function clusterIpTexts(spec: unknown): string[] {
  const texts = listMember(spec, "clusterIPs").filter((text) => typeof text === "string" && text !== "");
  if (texts.length > 0) return texts.map(String);
  const only = textMember(spec, "clusterIP");
  return only === "" ? [] : [only];
}

/** Most services are known within the cluster alone, and share this. */
const NO_ADDRESSES: readonly Uint8Array[] = [];
const NO_TEXTS: readonly string[] = [];

function readExternalAddresses(service: unknown): readonly string[] {
  const given = listMember(member(service, "spec"), "externalIPs").filter((text) => typeof text === "string");
  const ingress = listMember(member(member(service, "status"), "loadBalancer"), "ingress");
  const assigned = ingress.map((entry) => textMember(entry, "ip") || textMember(entry, "hostname"));
  if (given.length + assigned.length === 0) return NO_TEXTS;
  return [...new Set([...given.map(String), ...assigned])].filter((text) => text !== "");
}
