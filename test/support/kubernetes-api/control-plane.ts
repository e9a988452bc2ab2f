/** Does the work of a real cluster's controllers, so that hand-written manifests make a complete one. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import type { ApiSimulator } from "./api-simulator.ts";
import { type ApiObject, apiVersionOf, isRecord, text } from "./resource-types.ts";

const SERVICE_NAME = "kubernetes.io/service-name";

/** Puts every object of a folder's YAML files into the API, and makes the endpoint slices that controllers would make. */
export function loadManifests(api: ApiSimulator, folder: string): void {
  for (const file of readdirSync(folder)
    .filter((name) => name.endsWith(".yaml"))
    .sort()) {
    for (const document of parseAllDocuments(readFileSync(join(folder, file), "utf8"))) {
      for (const object of flatten(document.toJS())) applyObject(api, object);
    }
  }
  makeEndpointSlices(api);
}

/** As `kubectl apply` does with one object. */
export function applyObject(api: ApiSimulator, object: Readonly<Record<string, unknown>>): void {
  api.put(pluralOf(object), object);
}

/** The resource of an object, such as `services`. */
export function pluralOf({ kind, apiVersion }: Readonly<Record<string, unknown>>): string {
  const plural = PLURALS.get(`${String(apiVersion)}/${String(kind)}`);
  if (plural === undefined) throw new Error(`the simulated API has no ${String(apiVersion)} ${String(kind)}`);
  return plural;
}

/** Slices for the pods that selectors find, and for Endpoints objects, where the service has none of its own. */
export function makeEndpointSlices(api: ApiSimulator): void {
  const all = (plural: string) => api.storage.snapshot(api.type(plural)).objects;
  const owners = new Set(all("endpointslices").map((slice) => ownerOf(slice)));
  for (const endpoints of all("endpoints")) {
    const { name, namespace = "" } = endpoints.metadata;
    if (owners.has(`${namespace}/${name}`)) continue;
    for (const [at, subset] of list(endpoints.subsets).entries()) {
      putSlice(api, endpoints, `${name}-mirror-${at}`, mirrored(subset), ports(subset));
    }
  }
  for (const service of all("services")) {
    const selector = isRecord(service.spec) ? service.spec.selector : undefined;
    const { name, namespace } = service.metadata;
    if (!isRecord(selector) || owners.has(`${namespace}/${name}`)) continue;
    const selected = all("pods").filter(
      (pod) =>
        pod.metadata.namespace === namespace &&
        Object.entries(selector).every(([key, value]) => pod.metadata.labels?.[key] === value),
    );
    const endpoints = selected.filter(isAlive).map((pod) => endpointOf(pod, service));
    const targets = list(isRecord(service.spec) ? service.spec.ports : []);
    putSlice(
      api,
      service,
      `${name}-pods`,
      endpoints,
      targets.map((port) => targetPort(port, selected[0])),
    );
  }
}

const PLURALS: ReadonlyMap<string, string> = new Map([
  ["v1/Namespace", "namespaces"],
  ["v1/Service", "services"],
  ["v1/Pod", "pods"],
  ["v1/Endpoints", "endpoints"],
  ["discovery.k8s.io/v1/EndpointSlice", "endpointslices"],
  ["multicluster.x-k8s.io/v1alpha1/ServiceImport", "serviceimports"],
]);

function flatten(value: unknown): Record<string, unknown>[] {
  if (!isRecord(value)) return [];
  const kind = text(value, "kind");
  if (!kind.endsWith("List") || !Array.isArray(value.items)) return [value];
  const type = { apiVersion: value.apiVersion, kind: kind.slice(0, -"List".length) };
  return value.items.flatMap((item) => flatten(kind === "List" ? item : { ...type, ...item }));
}

function putSlice(
  api: ApiSimulator,
  owner: ApiObject,
  name: string,
  endpoints: readonly Record<string, unknown>[],
  slicePorts: readonly unknown[],
): void {
  const { namespace = "", labels = {} } = owner.metadata;
  const type = api.type("endpointslices");
  for (const family of ["IPv4", "IPv6"]) {
    const ofFamily = endpoints.filter(
      ({ addresses }) => String(addresses).includes(":") === (family === "IPv6"),
    );
    if (ofFamily.length === 0) continue;
    api.put("endpointslices", {
      apiVersion: apiVersionOf(type),
      kind: type.kind,
      metadata: {
        name: `${name}-${family.toLowerCase()}`,
        namespace,
        labels: { ...labels, [SERVICE_NAME]: owner.metadata.name },
      },
      addressType: family,
      endpoints: ofFamily,
      ports: slicePorts,
    });
  }
}

function ownerOf({ metadata }: ApiObject): string {
  return `${metadata.namespace}/${metadata.labels?.[SERVICE_NAME]}`;
}

function endpointOf(pod: ApiObject, service: ApiObject): Record<string, unknown> {
  const hostname = text(pod, "spec", "hostname");
  const isNamed = hostname !== "" && text(pod, "spec", "subdomain") === service.metadata.name;
  const conditions = list(isRecord(pod.status) ? pod.status.conditions : []);
  const unready = conditions.some(
    (each) => text(each, "type") === "Ready" && text(each, "status") !== "True",
  );
  return {
    addresses: [text(pod, "status", "podIP")],
    conditions: { ready: !unready },
    ...(isNamed && { hostname }),
    targetRef: { kind: "Pod", name: pod.metadata.name, namespace: pod.metadata.namespace },
  };
}

function isAlive(pod: ApiObject): boolean {
  const phase = text(pod, "status", "phase");
  return text(pod, "status", "podIP") !== "" && phase !== "Succeeded" && phase !== "Failed";
}

/** The port of the pod behind a service's port; one that is named stands among those of its containers. */
function targetPort(port: unknown, pod: ApiObject | undefined): Record<string, unknown> {
  const { name, port: number, protocol = "TCP", targetPort: target = number } = isRecord(port) ? port : {};
  if (typeof target === "number") return { name, port: target, protocol };
  const containers = list(isRecord(pod?.spec) ? pod.spec.containers : []);
  const named = containers
    .flatMap((container) => list(isRecord(container) ? container.ports : []))
    .find((each) => text(each, "name") === target);
  return { name, port: isRecord(named) ? named.containerPort : null, protocol };
}

function mirrored(subset: unknown): Record<string, unknown>[] {
  const of = (key: string, ready: boolean) =>
    list(isRecord(subset) ? subset[key] : []).map((address) => ({
      addresses: [text(address, "ip")],
      conditions: { ready },
      ...(text(address, "hostname") !== "" && { hostname: text(address, "hostname") }),
    }));
  return [...of("addresses", true), ...of("notReadyAddresses", false)];
}

function ports(subset: unknown): unknown[] {
  return list(isRecord(subset) ? subset.ports : []);
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
