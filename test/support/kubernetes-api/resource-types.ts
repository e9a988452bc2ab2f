/** The kinds of objects that the simulated API serves. */

/** An object of the API as JSON has it. */
export interface ApiObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMetadata;
  readonly [member: string]: unknown;
}

export interface ObjectMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly [member: string]: unknown;
}

export interface ResourceType {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** As in paths: `services`. */
  readonly plural: string;
  readonly kind: string;
  readonly shortNames: readonly string[];
  readonly isNamespaced: boolean;
  /** A custom resource, which has no protobuf. */
  readonly isCustom?: boolean;
  /** Columns of `kubectl get` between name and age. */
  readonly columns: readonly Column[];
}

export interface Column {
  readonly name: string;
  readonly cell: (object: ApiObject) => string;
}

export const RESOURCE_TYPES: readonly ResourceType[] = [
  type("", "v1", "namespaces", "Namespace", ["ns"], false, []),
  type("", "v1", "services", "Service", ["svc"], true, [
    column("Type", (object) => text(object, "spec", "type") || "ClusterIP"),
    column("Cluster-IP", (object) => text(object, "spec", "clusterIP") || "<none>"),
  ]),
  type("", "v1", "pods", "Pod", ["po"], true, [
    column("Status", (object) => text(object, "status", "phase")),
    column("IP", (object) => text(object, "status", "podIP") || "<none>"),
  ]),
  // No client requests these in protobuf.
  { ...type("", "v1", "nodes", "Node", ["no"], false, []), isCustom: true },
  { ...type("", "v1", "configmaps", "ConfigMap", ["cm"], true, []), isCustom: true },
  type("", "v1", "endpoints", "Endpoints", ["ep"], true, []),
  type("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", [], true, [
    column("AddressType", (object) => text(object, "addressType")),
  ]),
  type("discovery.k8s.io", "v1beta1", "endpointslices", "EndpointSlice", [], true, [
    column("AddressType", (object) => text(object, "addressType")),
  ]),
  {
    ...type("multicluster.x-k8s.io", "v1alpha1", "serviceimports", "ServiceImport", ["svcim"], true, [
      column("Type", (object) => text(object, "spec", "type")),
    ]),
    isCustom: true,
  },
  ...["v1", "v1beta1", "v1alpha3"].map((version) => ({
    ...type("networking.istio.io", version, "serviceentries", "ServiceEntry", ["se"], true, [
      column("Resolution", (object) => text(object, "spec", "resolution")),
    ]),
    isCustom: true,
  })),
];

/** `v1` or `discovery.k8s.io/v1`. */
export function apiVersionOf({ group, version }: ResourceType): string {
  return group === "" ? version : `${group}/${version}`;
}

/** Versions of one resource show the same objects. */
export function storageKey({ group, plural }: ResourceType): string {
  return `${group}/${plural}`;
}

function type(
  group: string,
  version: string,
  plural: string,
  kind: string,
  shortNames: readonly string[],
  isNamespaced: boolean,
  columns: readonly Column[],
): ResourceType {
  return { group, version, plural, kind, shortNames, isNamespaced, columns };
}

function column(name: string, cell: Column["cell"]): Column {
  return { name, cell };
}

/** The text at a path of members, or nothing. */
export function text(value: unknown, ...path: readonly string[]): string {
  let found = value;
  for (const key of path) found = isRecord(found) ? found[key] : undefined;
  return typeof found === "string" ? found : "";
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
