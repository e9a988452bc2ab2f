/** The objects of all files -> what the store is to hold. */
import type { LabelSelector } from "../objects/label-selector.ts";
import { serviceKey } from "../objects/names.ts";
import type { EndpointSet, Namespace, Pod, Service, ServiceEntry } from "../objects/objects.ts";
import { hasSelector, makeEndpoints } from "./endpoint-controller.ts";
import type { ManifestObject } from "./manifest-object.ts";
import type { ManifestProblem } from "./manifest-problem.ts";

export interface ClusterStateOptions {
  /** The option `labels`: which services, slices and pods count. Default all. */
  readonly labels?: LabelSelector | undefined;
  /** The option `namespace_labels`. Default all. */
  readonly namespaceLabels?: LabelSelector | undefined;
  readonly endpointPodNames?: boolean;
}

export interface ClusterState {
  readonly namespaces: Namespace[];
  readonly services: Service[];
  readonly endpoints: EndpointSet[];
  readonly pods: Pod[];
  /** What is imported from other clusters. */
  readonly imports: { readonly services: Service[]; readonly endpoints: EndpointSet[] };
  readonly serviceEntries: ServiceEntry[];
  /** Objects that two files define. */
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
    endpoints: assembleEndpoints(kinds, services, counts, options),
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
  for (const service of services) {
    const { namespace, name } = service.object;
    if (described.has(serviceKey(namespace, name)) || !hasSelector(service)) continue;
    sets.push(makeEndpoints(service, podsByNamespace.get(namespace) ?? [], options));
  }
  return sets;
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
