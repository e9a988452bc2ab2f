/** Documents -> the objects that DNS knows, each with its place. */
import { isObject, type JsonObject, listMember, member, textEntries, textMember } from "../objects/json.ts";
import { isDnsLabel } from "../objects/names.ts";
import type {
  EndpointSet,
  Identity,
  Namespace,
  Pod,
  Reduced,
  Service,
  ServiceEntry,
} from "../objects/objects.ts";
import { type ReduceOptions, reduceNamespace, reducePod, reduceService } from "../objects/reduce.ts";
import {
  IMPORT_NAME_LABEL,
  reduceEndpointSlice,
  reduceEndpoints,
  reduceImportedSlice,
} from "../objects/reduce-endpoints.ts";
import { reduceServiceImport } from "../objects/reduce-imports.ts";
import { reduceServiceEntry } from "../objects/reduce-service-entries.ts";
import type { ManifestProblem } from "./manifest-problem.ts";
import type { DocumentPath, ParsedDocument } from "./parse-documents.ts";

/** Where an object came from, and what its labels say. */
interface Origin {
  readonly file: string;
  readonly line: number;
  readonly labels: ReadonlyMap<string, string>;
}

export type ManifestObject = Origin &
  (
    | { readonly kind: "Namespace"; readonly object: Namespace }
    | { readonly kind: "Service"; readonly object: Service; readonly value: JsonObject }
    | { readonly kind: "EndpointSlice"; readonly object: EndpointSet }
    | { readonly kind: "Endpoints"; readonly object: EndpointSet }
    | { readonly kind: "ServiceImport"; readonly object: Service }
    | { readonly kind: "ImportedSlice"; readonly object: EndpointSet }
    | { readonly kind: "ServiceEntry"; readonly object: ServiceEntry }
    | { readonly kind: "Pod"; readonly object: Pod; readonly value: JsonObject }
    | { readonly kind: WorkloadKind; readonly object: Identity; readonly value: JsonObject }
  );

/** The kinds of the group `apps` that a cluster makes pods of. */
export const WORKLOAD_KINDS = ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"] as const;
export type WorkloadKind = (typeof WORKLOAD_KINDS)[number];
export type WorkloadObject = Extract<ManifestObject, { kind: WorkloadKind }>;

/** What the documents of one file amount to. */
export interface ManifestContent {
  readonly objects: ManifestObject[];
  /** Every namespace that an object of any kind names, also one of a kind that DNS does not know. */
  readonly namespaces: Set<string>;
  readonly problems: ManifestProblem[];
}

/** As `kubectl` does with an object that names no namespace. */
const DEFAULT_NAMESPACE = "default";

const MAX_LIST_DEPTH = 4;

/** Adds what one document holds to the content of its file. */
export function readDocument(
  document: ParsedDocument,
  file: string,
  options: ReduceOptions,
  content: ManifestContent,
): void {
  if ("problem" in document) {
    content.problems.push({ severity: "error", file, line: document.line, message: document.problem });
    return;
  }
  new DocumentReader(document, file, options, content).read(
    document.value,
    [],
    { kind: "", apiVersion: "" },
    0,
  );
}

/** The kind and version that a typed list gives to its items, which need not repeat them. */
interface InheritedType {
  readonly kind: string;
  readonly apiVersion: string;
}

class DocumentReader {
  readonly #document: Extract<ParsedDocument, { value: unknown }>;
  readonly #file: string;
  readonly #options: ReduceOptions;
  readonly #content: ManifestContent;

  constructor(
    document: Extract<ParsedDocument, { value: unknown }>,
    file: string,
    options: ReduceOptions,
    content: ManifestContent,
  ) {
    this.#document = document;
    this.#file = file;
    this.#options = options;
    this.#content = content;
  }

  read(value: unknown, path: DocumentPath, inherited: InheritedType, depth: number): void {
    if (!isObject(value)) {
      this.#problem(path, "not a Kubernetes object: expected a mapping with apiVersion and kind");
      return;
    }
    const kind = textMember(value, "kind") || inherited.kind;
    const apiVersion = textMember(value, "apiVersion") || inherited.apiVersion;
    if (kind === "" || apiVersion === "") {
      this.#problem(path, `not a Kubernetes object: ${kind === "" ? "kind" : "apiVersion"} is missing`);
    } else if (kind.endsWith("List") && Array.isArray(member(value, "items"))) {
      this.#list(value, path, { kind: kind.slice(0, -"List".length), apiVersion }, depth);
    } else {
      this.#object(value, path, kind, apiVersion.split("/").slice(0, -1).join("/"));
    }
  }

  #list(list: JsonObject, path: DocumentPath, type: InheritedType, depth: number): void {
    if (depth === MAX_LIST_DEPTH) {
      this.#problem(path, `lists nested more than ${MAX_LIST_DEPTH} deep`);
      return;
    }
    // The items of a plain List say themselves what they are.
    const inherited = type.kind === "" ? { kind: "", apiVersion: "" } : type;
    for (const [index, item] of listMember(list, "items").entries()) {
      this.read(item, [...path, "items", index], inherited, depth + 1);
    }
  }

  #object(value: JsonObject, path: DocumentPath, kind: string, group: string): void {
    const given = textMember(member(value, "metadata"), "namespace");
    if (isDnsLabel(given)) this.#content.namespaces.add(given);
    const origin = {
      file: this.#file,
      line: this.#document.lineOf(path),
      labels: new Map(textEntries(member(value, "metadata"), "labels")),
    };
    const options = this.#options;
    const { objects } = this.#content;
    // Other groups have kinds of the same name: a Service of Knative is none of ours.
    switch (`${group}/${kind}`) {
      case "/Namespace":
        this.#take(reduceNamespace(value), path, (object) => {
          this.#content.namespaces.add(object.name);
          objects.push({ kind: "Namespace", object, ...origin });
        });
        break;
      case "/Service":
        this.#take(reduceService(withNamespace(value), options), path, (object) => {
          objects.push({ kind: "Service", object, value, ...origin });
          this.#warnOfMissingAddress(object, path);
        });
        break;
      case "discovery.k8s.io/EndpointSlice":
        this.#take(reduceEndpointSlice(withNamespace(value), options), path, (object) => {
          objects.push({ kind: "EndpointSlice", object, ...origin });
        });
        // One slice may belong to a service and to an import.
        if (!origin.labels.has(IMPORT_NAME_LABEL)) break;
        this.#take(reduceImportedSlice(withNamespace(value), options), path, (object) => {
          objects.push({ kind: "ImportedSlice", object, ...origin });
        });
        break;
      case "multicluster.x-k8s.io/ServiceImport":
        this.#take(reduceServiceImport(withNamespace(value), options), path, (object) => {
          objects.push({ kind: "ServiceImport", object, ...origin });
        });
        break;
      case "networking.istio.io/ServiceEntry":
        if (options.serviceEntries === undefined) break;
        this.#take(reduceServiceEntry(withNamespace(value), options.serviceEntries), path, (object) => {
          objects.push({ kind: "ServiceEntry", object, ...origin });
        });
        break;
      case "/Endpoints":
        this.#take(reduceEndpoints(withNamespace(value), options), path, (object) => {
          objects.push({ kind: "Endpoints", object, ...origin });
        });
        break;
      case "/Pod":
        this.#take(reducePod(withNamespace(value), options), path, (object) => {
          objects.push({ kind: "Pod", object, value, ...origin });
        });
        break;
      case "apps/Deployment":
      case "apps/StatefulSet":
      case "apps/DaemonSet":
      case "apps/ReplicaSet":
        this.#takeWorkload(withNamespace(value), kind, origin);
        break;
    }
  }

  /** Nothing of it is served but the pods that may stand in for it, so what it lacks is no fault. */
  #takeWorkload(value: JsonObject, given: string, origin: Origin): void {
    const kind = WORKLOAD_KINDS.find((each) => each === given);
    const metadata = member(value, "metadata");
    const [namespace, name] = [textMember(metadata, "namespace"), textMember(metadata, "name")];
    if (kind === undefined || name === "" || !isDnsLabel(namespace)) return;
    this.#content.namespaces.add(namespace);
    this.#content.objects.push({ kind, object: { namespace, name }, value, ...origin });
  }

  #take<T extends Identity>(reduced: Reduced<T>, path: DocumentPath, accept: (object: T) => void): void {
    if ("problem" in reduced) {
      if (!reduced.isForeign) this.#problem(path, reduced.problem);
      return;
    }
    if (reduced.object.namespace !== "") this.#content.namespaces.add(reduced.object.namespace);
    accept(reduced.object);
  }

  #warnOfMissingAddress(service: Service, path: DocumentPath): void {
    if (service.type !== "clusterIP" || service.clusterAddresses.length > 0) return;
    const message =
      `service ${service.namespace}/${service.name} has no clusterIP and therefore no records: ` +
      "in a cluster the API server assigns one, in a manifest it has to be written down";
    this.#problem(path, message, "warning");
  }

  #problem(path: DocumentPath, message: string, severity: ManifestProblem["severity"] = "error"): void {
    this.#content.problems.push({ severity, file: this.#file, line: this.#document.lineOf(path), message });
  }
}

function withNamespace(value: JsonObject): JsonObject {
  const metadata = member(value, "metadata");
  if (!isObject(metadata)) return value;
  const namespace = member(metadata, "namespace");
  if (namespace !== undefined && namespace !== null && namespace !== "") return value;
  return { ...value, metadata: { ...metadata, namespace: DEFAULT_NAMESPACE } };
}
