/**
 * The endpoints of services whose folder holds pods but no slices: a folder has no control plane, so this
 * does for DNS what the endpoint slice controller does in a cluster.
 */

import { type JsonObject, listMember, member, textEntries, textMember } from "../objects/json.ts";
import { LabelSelector } from "../objects/label-selector.ts";
import { isDnsLabel } from "../objects/names.ts";
import type { EndpointGroup, EndpointSet, Port, Service } from "../objects/objects.ts";
import { isPodRunning, podAddresses, readProtocol } from "../objects/reduce.ts";
import { type EndpointAddress, packGroups } from "../objects/reduce-endpoints.ts";

export interface ManifestPod {
  readonly namespace: string;
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly value: JsonObject;
}

export interface SelectingService {
  readonly object: Service;
  readonly value: JsonObject;
}

/** The services that have a selector, and so have their endpoints made for them. */
export function hasSelector({ object, value }: SelectingService): boolean {
  return object.type !== "externalName" && textEntries(member(value, "spec"), "selector").length > 0;
}

/** Which pods belong to a service that has a selector. */
export function selectorOf({ value }: SelectingService): LabelSelector {
  return LabelSelector.ofLabels(textEntries(member(value, "spec"), "selector"));
}

/** Makes the endpoints of one service out of the pods of its namespace. */
export function makeEndpoints(
  service: SelectingService,
  pods: readonly ManifestPod[],
  options: { readonly endpointPodNames?: boolean },
): EndpointSet {
  const { namespace, name } = service.object;
  const selector = selectorOf(service);
  const ports = listMember(member(service.value, "spec"), "ports");

  // Pods that give a named port different numbers go into different slices, in a cluster as here.
  const byPorts = new Map<string, { ports: readonly Port[]; addresses: EndpointAddress[] }>();
  for (const pod of pods) {
    if (!selector.matches(pod.labels)) continue;
    const podPorts = ports.flatMap((port) => resolvePort(port, pod.value) ?? []);
    const key = JSON.stringify(podPorts);
    const group = byPorts.get(key) ?? { ports: podPorts, addresses: [] };
    byPorts.set(key, group);
    const ready = service.object.publishNotReadyAddresses || isReady(pod.value);
    const label =
      endpointHostname(pod, name) || (options.endpointPodNames && isDnsLabel(pod.name) ? pod.name : "");
    for (const octets of endpointAddresses(service, pod))
      group.addresses.push({ octets, ready, label, zone: "" });
  }

  const groups: EndpointGroup[] = [];
  for (const group of byPorts.values()) groups.push(...packGroups(group.addresses, group.ports));
  return { namespace, name: setName(name), service: name, groups };
}

/** No slice can be called so, since a colon is not allowed in an object's name. */
function setName(service: string): string {
  return `pods-of:${service}`;
}

/** The hostname counts only where the pod's subdomain is this very service (docs/spec/kubernetes-dns.md#pod-hostname). */
function endpointHostname(pod: ManifestPod, service: string): string {
  const spec = member(pod.value, "spec");
  const hostname = textMember(spec, "hostname");
  return textMember(spec, "subdomain") === service && isDnsLabel(hostname) ? hostname : "";
}

/**
 * No controller keeps the conditions in a folder up to date: a pod is ready unless its status says that it is not, or that it
 * has not begun to run.
 */
function isReady(pod: JsonObject): boolean {
  const status = member(pod, "status");
  const ready = listMember(status, "conditions").find(
    (condition) => textMember(condition, "type") === "Ready",
  );
  if (ready !== undefined) return textMember(ready, "status") === "True";
  return textMember(status, "phase") !== "Pending";
}

/** The pod's addresses of the families that the service has, one of each. */
function endpointAddresses(service: SelectingService, pod: ManifestPod): Uint8Array[] {
  if (!isPodRunning(pod.value)) return [];
  const addresses = podAddresses(pod.value);
  const lengths = familyLengths(service) ?? [addresses[0]?.length];
  return [4, 16].flatMap((length) =>
    lengths.includes(length) ? (addresses.find((octets) => octets.length === length) ?? []) : [],
  );
}

/**
 * The lengths of the addresses that a service's endpoints may have. Undefined for a headless service that says nothing:
 * an API server would give it the first family of the cluster, which is that of a pod's first address.
 */
function familyLengths({ object, value }: SelectingService): number[] | undefined {
  const spec = member(value, "spec");
  const families = listMember(spec, "ipFamilies").filter((family) => family === "IPv4" || family === "IPv6");
  if (families.length > 0) return families.map((family) => (family === "IPv4" ? 4 : 16));
  if (textMember(spec, "ipFamilyPolicy").endsWith("DualStack")) return [4, 16];
  return object.clusterAddresses.length > 0
    ? object.clusterAddresses.map((octets) => octets.length)
    : undefined;
}

/** A service's port with the number that it has on the pod; undefined where the pod has no port of that name. */
function resolvePort(port: unknown, pod: JsonObject): Port | undefined {
  const protocol = readProtocol(port);
  if (protocol === undefined) return undefined;
  const target = member(port, "targetPort") ?? member(port, "port");
  const number = typeof target === "string" ? namedPort(target, protocol, pod) : target;
  if (typeof number !== "number" || !Number.isInteger(number) || number < 1 || number > 65_535)
    return undefined;
  return { name: textMember(port, "name").toLowerCase(), number, protocol };
}

function namedPort(name: string, protocol: string, pod: JsonObject): unknown {
  if (/^\d+$/.test(name)) return Number(name);
  for (const container of listMember(member(pod, "spec"), "containers")) {
    for (const port of listMember(container, "ports")) {
      if (textMember(port, "name") === name && readProtocol(port) === protocol)
        return member(port, "containerPort");
    }
  }
  return undefined;
}
