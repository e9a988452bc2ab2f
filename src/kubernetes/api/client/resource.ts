/** The kinds of objects that are listed and watched, each under the versions of the API that serve it. */
import type { DescField } from "@bufbuild/protobuf";
import type { Kind, Reduced, WatchedKind, WatchedObjects } from "../../objects/objects.ts";
import {
  OLD_PUBLISH_ANNOTATION,
  type ReduceOptions,
  reduceNamespace,
  reducePod,
  reduceService,
} from "../../objects/reduce.ts";
import {
  IMPORT_NAME_LABEL,
  reduceEndpointSlice,
  reduceEndpoints,
  reduceImportedSlice,
  SERVICE_NAME_LABEL,
  SOURCE_CLUSTER_LABEL,
  TRIGGER_TIME,
} from "../../objects/reduce-endpoints.ts";
import { reduceServiceImport } from "../../objects/reduce-imports.ts";
import { reduceServiceEntry } from "../../objects/reduce-service-entries.ts";
import {
  EndpointAddressSchema,
  EndpointSchema,
  EndpointSliceSchema,
  EndpointsSchema,
  NamespaceSchema,
  ObjectMetaSchema,
  PodSchema,
  ServiceSchema,
} from "../protobuf/kubernetes-pb.ts";
import { type DirectReader, ServiceReader, SliceReader } from "../protobuf/read-directly.ts";
import { MessageReader } from "../protobuf/read-message.ts";

export interface Resource<K extends WatchedKind> {
  readonly kind: K;
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** As in paths: `services`. */
  readonly plural: string;
  /** As objects say it: `Service`. */
  readonly objectKind: string;
  /** Objects in a page of a list: some are large. */
  readonly pageSize: number;
  /** What the server is to leave out. */
  readonly fieldSelector: string;
  /** Reads an object's protobuf; undefined where only JSON is asked for. */
  readonly protobuf: MessageReader | undefined;
  /** Reads and reduces an object of a watch in one step, where that is possible: see {@link asWanted}. */
  readonly direct?: DirectReader<WatchedObjects[K]> | undefined;
  /** Makes that. */
  readonly directly?: (options: ReduceOptions) => DirectReader<WatchedObjects[K]> | undefined;
  /** Present where servers may well lack the resource: what to do about it. Nothing waits for its first list then. */
  readonly remedy?: string;
  readonly reduce: (value: unknown, options: ReduceOptions) => Reduced<WatchedObjects[K]>;
}

/** A kind's resources in order of preference: where the first is not served, the next is asked for. */
export type ResourcesOf<K extends WatchedKind> = readonly [Resource<K>, ...Resource<K>[]];

export const RESOURCES: { readonly [K in Kind]: ResourcesOf<K> } = {
  namespaces: [
    {
      ...core("namespaces", "namespaces", "Namespace"),
      protobuf: new MessageReader(NamespaceSchema),
      reduce: (value) => reduceNamespace(value),
    },
  ],
  services: [
    {
      ...core("services", "services", "Service"),
      protobuf: new MessageReader(ServiceSchema),
      directly: (options) => (options.externalAddresses ? undefined : new ServiceReader(options)),
      reduce: reduceService,
    },
  ],
  endpoints: [
    {
      ...slices("v1"),
      protobuf: new MessageReader(EndpointSliceSchema),
      directly: (options) => new SliceReader(options),
    },
    // The numbers of its fields are others, and no server that has it is worth a second schema.
    { ...slices("v1beta1"), protobuf: undefined },
    {
      ...core("endpoints", "endpoints", "Endpoints"),
      protobuf: new MessageReader(EndpointsSchema),
      reduce: reduceEndpoints,
    },
  ],
  pods: [
    {
      ...core("pods", "pods", "Pod"),
      fieldSelector: "status.phase!=Succeeded,status.phase!=Failed,status.phase!=Unknown",
      protobuf: new MessageReader(PodSchema),
      reduce: reducePod,
    },
  ],
};

/** What is imported from other clusters. Its services are ServiceImports, which are custom resources: they come as JSON alone. */
export const IMPORT_RESOURCES: {
  readonly services: ResourcesOf<"services">;
  readonly endpoints: ResourcesOf<"endpoints">;
} = {
  services: [
    {
      kind: "services",
      group: "multicluster.x-k8s.io",
      version: "v1alpha1",
      plural: "serviceimports",
      objectKind: "ServiceImport",
      pageSize: 500,
      fieldSelector: "",
      protobuf: undefined,
      remedy: "install the CRDs of the Multi-Cluster Services API (KEP-1645), or take 'multicluster' out",
      reduce: reduceServiceImport,
    },
  ],
  endpoints: [
    {
      ...slices("v1"),
      protobuf: new MessageReader(EndpointSliceSchema),
      reduce: reduceImportedSlice,
    },
    { ...slices("v1beta1"), protobuf: undefined, reduce: reduceImportedSlice },
  ],
};

/** Istio's ServiceEntry, which is a custom resource: it comes as JSON alone. */
export const SERVICE_ENTRY_RESOURCES: ResourcesOf<"serviceentries"> = [
  serviceEntries("v1"),
  serviceEntries("v1beta1"),
  serviceEntries("v1alpha3"),
];

/** Resources of which nothing is read that the options do not want: a slice names a pod for each endpoint. */
export function asWanted<K extends WatchedKind>(
  resources: ResourcesOf<K>,
  options: ReduceOptions,
): ResourcesOf<K> {
  const unwanted = [
    ...(options.endpointPodNames
      ? []
      : [EndpointSchema.field.targetRef, EndpointAddressSchema.field.targetRef]),
    ...(options.zones ? [] : [EndpointSchema.field.zone]),
  ];
  const [first, ...others] = resources.map((resource) => ({
    ...resource,
    protobuf: resource.protobuf?.wanting({ unwanted, keys: wantedKeys(resource.kind, options) }),
    direct: resource.directly?.(options),
  }));
  return first === undefined ? resources : [first, ...others];
}

/** Of labels and annotations, which are most of a small object. */
function wantedKeys(
  kind: WatchedKind,
  { podLabels }: ReduceOptions,
): ReadonlyMap<DescField, readonly string[]> {
  const { labels, annotations } = ObjectMetaSchema.field;
  if (kind === "pods") return new Map([[annotations, []], ...(podLabels ? [] : [[labels, []] as const])]);
  return new Map([
    [labels, kind === "endpoints" ? SLICE_LABELS : []],
    [
      annotations,
      kind === "endpoints" ? [TRIGGER_TIME] : kind === "services" ? [OLD_PUBLISH_ANNOTATION] : [],
    ],
  ]);
}

const SLICE_LABELS = [SERVICE_NAME_LABEL, IMPORT_NAME_LABEL, SOURCE_CLUSTER_LABEL];

/** The path of lists and watches of all namespaces. */
export function pathOf({ group, version, plural }: Resource<WatchedKind>): string {
  return group === "" ? `/api/${version}/${plural}` : `/apis/${group}/${version}/${plural}`;
}

function core<K extends WatchedKind>(kind: K, plural: string, objectKind: string) {
  return { kind, group: "", version: "v1", plural, objectKind, pageSize: 500, fieldSelector: "" };
}

function slices(version: string) {
  return {
    kind: "endpoints" as const,
    group: "discovery.k8s.io",
    version,
    plural: "endpointslices",
    objectKind: "EndpointSlice",
    // A slice holds up to a thousand endpoints.
    pageSize: 100,
    fieldSelector: "",
    reduce: reduceEndpointSlice,
  };
}

function serviceEntries(version: string): Resource<"serviceentries"> {
  return {
    kind: "serviceentries",
    group: "networking.istio.io",
    version,
    plural: "serviceentries",
    objectKind: "ServiceEntry",
    pageSize: 500,
    fieldSelector: "",
    protobuf: undefined,
    remedy: "install the CRDs of Istio",
    reduce: (value, { serviceEntries: rules }) =>
      rules === undefined ? { problem: "not wanted", isForeign: true } : reduceServiceEntry(value, rules),
  };
}
