/** The objects of all files -> what the store is to hold. */
import type { LabelSelector } from "../objects/label-selector.ts";
import { serviceKey } from "../objects/names.ts";
import type { EndpointSet, Namespace, Pod, Service, ServiceEntry } from "../objects/objects.ts";
import { hasSelector, makeEndpoints, selectorOf } from "./endpoint-controller.ts";
import { type ManifestObject, WORKLOAD_KINDS, type WorkloadObject } from "./manifest-object.ts";
import type { ManifestProblem } from "./manifest-problem.ts";
import { replicasOf, standInPods, templateLabels } from "./stand-in-pods.ts";

export interface ClusterStateOptions {
  /** The option `labels`: which services, slices and pods count. Default all. */
  readonly labels?: LabelSelector | undefined;
  /** The option `namespace_labels`. Default all. */
  readonly namespaceLabels?: LabelSelector | undefined;
  readonly endpointPodNames?: boolean;
  /** The option `replicas_as_endpoints`: replicas of Deployments and the like stand in for pods. */
  readonly replicasAsEndpoints?: boolean;
}

export interface ClusterState {
  readonly namespaces: Namespace[];
  readonly services: Service[];
  readonly endpoints: EndpointSet[];
  readonly pods: Pod[];
  /** What is imported from other clusters. */
  readonly imports: { readonly services: Service[]; readonly endpoints: EndpointSet[] };
  readonly serviceEntries: ServiceEntry[];
  /** Objects that two files define, and Services whose pods only a cluster would make. */
  readonly problems: ManifestProblem[];
}

/** Every cluster has these from the start, so no manifest bothers to make them. */
const INITIAL_NAMESPACES = ["default", "kube-system"];

/** The API server puts this label on every namespace, so that a selector can name one. */
const NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name";

/** `namespaces` are those that any object names: who writes manifests seldom writes their namespace down. */
export function assembleClusterState(
  objects: Iterable<ManifestObject>,
  namespaces: Iterable<string>,
  options: ClusterStateOptions,
): ClusterState {
  const problems: ManifestProblem[] = [];
  const kinds = new LatestObjects(objects, problems);
  const counts = ({ labels }: ManifestObject) => options.labels?.matches(labels) ?? true;
  const services = kinds.of("Service").filter(counts);
  return {
    namespaces: selectNamespaces(kinds.of("Namespace"), namespaces, options.namespaceLabels),
    services: objectsOf(services),
    endpoints: assembleEndpoints(kinds, services, counts, options, problems),
    pods: objectsOf(kinds.of("Pod").filter(counts)),
    imports: {
      services: objectsOf(kinds.of("ServiceImport").filter(counts)),
      endpoints: objectsOf(kinds.of("ImportedSlice").filter(counts)),
    },
    serviceEntries: objectsOf(kinds.of("ServiceEntry").filter(counts)),
    problems,
  };
}

function objectsOf<T>(described: readonly { readonly object: T }[]): T[] {
  return described.map(({ object }) => object);
}

type ObjectOf<K extends ManifestObject["kind"]> = Extract<ManifestObject, { kind: K }>;

/** Objects by kind. Where two have one name the later counts, as if they were applied one after the other. */
class LatestObjects {
  readonly #objects = new Map<string, ManifestObject>();

  constructor(objects: Iterable<ManifestObject>, problems: ManifestProblem[]) {
    for (const object of objects) {
      const key = objectKey(object);
      const earlier = this.#objects.get(key);
      if (earlier !== undefined) {
        const { file, line } = object;
        const message = `${describe(object)} replaces the one in ${earlier.file}:${earlier.line}`;
        problems.push({ severity: "warning", file, line, message });
      }
      this.#objects.set(key, object);
    }
  }

  of<K extends ManifestObject["kind"]>(kind: K): ObjectOf<K>[] {
    return Array.from(this.#objects.values()).filter((object): object is ObjectOf<K> => object.kind === kind);
  }
}

/** Tells an object from every other one. */
export function objectKey({ kind, object }: ManifestObject): string {
  return `${kind}/${object.namespace}/${object.name}`;
}

function describe({ kind, object }: ManifestObject): string {
  return `${kind} ${object.namespace === "" ? "" : `${object.namespace}/`}${object.name}`;
}

function selectNamespaces(
  given: readonly ObjectOf<"Namespace">[],
  named: Iterable<string>,
  selector: LabelSelector | undefined,
): Namespace[] {
  const labelsByName = new Map<string, ReadonlyMap<string, string>>();
  for (const name of [...INITIAL_NAMESPACES, ...named]) labelsByName.set(name, new Map());
  for (const { object, labels } of given) labelsByName.set(object.name, labels);
  const selected: Namespace[] = [];
  for (const [name, labels] of labelsByName) {
    if (selector?.matches(new Map([...labels, [NAMESPACE_NAME_LABEL, name]])) ?? true) {
      selected.push({ namespace: "", name });
    }
  }
  return selected;
}

/** What the files say of a service's endpoints counts, slices before Endpoints; only then are its pods looked at. */
function assembleEndpoints(
  kinds: LatestObjects,
  services: readonly ObjectOf<"Service">[],
  counts: (object: ManifestObject) => boolean,
  options: ClusterStateOptions,
  problems: ManifestProblem[],
): EndpointSet[] {
  const slices = kinds.of("EndpointSlice");
  const described = new Set(slices.map(({ object }) => ownerKey(object)));
  const endpoints = kinds.of("Endpoints").filter(({ object }) => !described.has(ownerKey(object)));
  for (const { object } of endpoints) described.add(ownerKey(object));

  const sets = slices.filter(counts).map(({ object }) => object);
  // An Endpoints object may bear the name of a slice; a colon cannot occur in either.
  for (const { object } of endpoints.filter(counts))
    sets.push({ ...object, name: `endpoints:${object.name}` });

  const podsByNamespace = groupPods(kinds.of("Pod"));
  const workloads = WORKLOAD_KINDS.flatMap((kind) => kinds.of(kind));
  const standIns = Map.groupBy(
    options.replicasAsEndpoints ? standInPods(workloads) : [],
    ({ namespace }) => namespace,
  );
  const without: { readonly service: ObjectOf<"Service">; readonly workload: WorkloadObject }[] = [];
  for (const service of services) {
    const { namespace, name } = service.object;
    if (described.has(serviceKey(namespace, name)) || !hasSelector(service)) continue;
    const pods = podsByNamespace.get(namespace) ?? [];
    const selects = selectorOf(service);
    const hasPods = pods.some(({ labels }) => selects.matches(labels));
    sets.push(makeEndpoints(service, hasPods ? pods : (standIns.get(namespace) ?? []), options));
    if (hasPods || options.replicasAsEndpoints || service.object.type !== "headless") continue;
    const workload = workloads.find(
      (each) => each.object.namespace === namespace && selects.matches(templateLabels(each)),
    );
    if (workload !== undefined) without.push({ service, workload });
  }
  problems.push(...reportWithoutPods(without));
  return sets;
}

/** One warning for all: who serves the manifests of an application has many such Services, and the remedy is the same. */
function reportWithoutPods(
  found: readonly { readonly service: ObjectOf<"Service">; readonly workload: WorkloadObject }[],
): ManifestProblem[] {
  const [first, ...others] = found;
  if (first === undefined) return [];
  const { service, workload } = first;
  const { file, line, object } = service;
  const replicas = replicasOf(workload);
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
  const message =
    `headless service ${object.namespace}/${object.name}${more} has no endpoints: the files have no pods, and only a cluster makes ` +
    `${replicas === 1 ? "one" : replicas} of ${workload.kind} ${workload.object.name}. ` +
    "Add Pods or EndpointSlices, or let replicas stand in for pods with the option replicas_as_endpoints";
  return [{ severity: "warning", file, line, message }];
}

function ownerKey(set: EndpointSet): string {
  return serviceKey(set.namespace, set.service);
}

function groupPods(pods: readonly ObjectOf<"Pod">[]) {
  const described = pods.map(({ object, labels, value }) => {
    return { namespace: object.namespace, name: object.name, labels, value };
  });
  return Map.groupBy(described, ({ namespace }) => namespace);
}
