/** A cluster that a test changes under a running server: the same objects behind an API, and in a folder of manifests. */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ApiSimulator } from "./kubernetes-api/api-simulator.ts";
import { applyObject, pluralOf } from "./kubernetes-api/control-plane.ts";

/** An object of Kubernetes, as manifests have it. */
export interface ClusterObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [member: string]: unknown;
}

export interface ChangingCluster extends AsyncDisposable {
  /** The line of `kubernetes` that names it. */
  readonly source: string;
  /** Makes an object, or puts it in the place of the one with its name. */
  put(object: ClusterObject): void;
  remove(object: ClusterObject): void;
  /** Takes the whole cluster away, as a failure does: nothing was deleted in it. */
  lose(): Promise<void>;
}

/** Both kinds, by name. */
export const CHANGING_CLUSTERS: readonly (readonly [title: string, start: () => Promise<ChangingCluster>])[] =
  [
    ["the API", startApi],
    ["manifests", startManifests],
  ];

async function startApi(): Promise<ChangingCluster> {
  const api = await ApiSimulator.start();
  return {
    source: `endpoint ${api.url}`,
    put: (object) => applyObject(api, object),
    remove: (object) => api.delete(pluralOf(object), object.metadata.namespace ?? "", object.metadata.name),
    lose: () => api.close(),
    [Symbol.asyncDispose]: () => api.close(),
  };
}

async function startManifests(): Promise<ChangingCluster> {
  const folder = mkdtempSync(join(tmpdir(), "portolan-cluster-"));
  const pathOf = ({ kind, metadata: { namespace = "", name } }: ClusterObject) =>
    join(folder, `${kind}.${namespace}.${name}.json`);
  return {
    source: `manifests ${folder}`,
    put(object) {
      // A half-written file would be a fault of its own.
      const path = pathOf(object);
      writeFileSync(`${path}.new`, JSON.stringify(object));
      renameSync(`${path}.new`, path);
    },
    remove: (object) => rmSync(pathOf(object)),
    lose: async () => rmSync(folder, { recursive: true }),
    [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

const metadata = (name: string) => ({ name, namespace: "default" });

/** A Service in the namespace `default`. */
export function service(
  name: string,
  spec: object,
  { status = {}, annotations = {} }: { status?: object; annotations?: Readonly<Record<string, string>> } = {},
): ClusterObject {
  return { apiVersion: "v1", kind: "Service", metadata: { ...metadata(name), annotations }, spec, status };
}

/** The EndpointSlice of a Service in the namespace `default`. */
export function slice(
  owner: string,
  endpoints: readonly object[],
  { ports = null, family = "IPv4" }: { ports?: readonly object[] | null; family?: "IPv4" | "IPv6" } = {},
): ClusterObject {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { ...metadata(`${owner}-1`), labels: { "kubernetes.io/service-name": owner } },
    addressType: family,
    endpoints,
    ports,
  };
}
