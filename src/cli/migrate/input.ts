/**
 * The input of `migrate`: a Corefile, a ConfigMap with a Corefile, kube-dns's ConfigMap, values of the Helm chart, or the DNS object of
 * OpenShift.
 */
import { ClusterAccessError } from "../../kubernetes/api/access/access.ts";
import { type ParsedDocument, parseDocuments } from "../../kubernetes/manifests/parse-documents.ts";
import {
  isObject,
  type JsonObject,
  listMember,
  member,
  textEntries,
  textMember,
} from "../../kubernetes/objects/json.ts";
import { SystemClock } from "../../lib/time/clock.ts";
import { makeClusterClient, readConfigMap } from "../../predecessors/cluster-client.ts";
import {
  KUBE_DNS_KEYS,
  type KubeDnsConfig,
  KubeDnsConfigError,
  readKubeDnsConfig,
} from "../../predecessors/kube-dns/config-map.ts";
import { HelmValuesError } from "../../predecessors/migrate/from-helm-values.ts";
import { isOpenShiftDns, valuesOfOpenShiftDns } from "../../predecessors/migrate/from-openshift-dns.ts";
import type { CorefileSource } from "../../server/configuration/configuration.ts";

export type MigrationInput =
  | { readonly kind: "corefile"; readonly source: CorefileSource }
  | { readonly kind: "kube-dns"; readonly config: KubeDnsConfig }
  | { readonly kind: "helm-values"; readonly values: unknown };

type ConfigMapData = Readonly<Record<string, string>>;

/** Nothing in the input can be migrated. The message is one line. */
export class InputError extends Error {
  override readonly name = "InputError";
}

/**
 * Names the Corefile inside of `file` in messages, because its line numbers are not those of the file. Imports stay relative to the
 * same folder.
 */
export function nameOfCorefileIn(file: string): string {
  return `${file} (Corefile)`;
}

/**
 * Detects the kind of a text. A ConfigMap may be any of its documents, or an item of a List.
 * @param kind the kind that the user names, if any
 * @throws InputError
 */
export function readInput(source: CorefileSource, kind: MigrationInput["kind"] | undefined): MigrationInput {
  if (kind === "corefile") return { kind, source };
  const { text, file } = source;
  const documents = [...parseDocuments(text)];
  const objects = documents.flatMap((document) => ("value" in document ? objectsIn(document.value) : []));
  const alone =
    kind === undefined ? objects.map(corefileAlone).find((each) => each !== undefined) : undefined;
  if (alone !== undefined) return { kind: "corefile", source: { text: alone, file: nameOfCorefileIn(file) } };
  const found = findConfigMap(objects, kind);
  if (found !== undefined) return fromData(found, kind, file, file);
  const released = objects
    .map((object) => valuesOfRelease(object, file))
    .find((values) => values !== undefined);
  if (released !== undefined && kind !== "kube-dns") return { kind: "helm-values", values: released };
  if (objects.some((object) => isKubernetes(object))) throw withoutConfigMap(documents, file);
  const value = firstValue(documents, kind === undefined ? undefined : file);
  if (
    kind === "helm-values" ||
    (kind === undefined && isObject(value) && Array.isArray(member(value, "servers")))
  )
    return { kind: "helm-values", values: value ?? {} };
  if (isObject(value) && hasKubeDnsKey(value)) {
    const data = Object.entries(value).map(([key, each]) => [
      key,
      typeof each === "string" ? each : JSON.stringify(each),
    ]);
    return fromData(Object.fromEntries(data), kind, file, file);
  }
  if (kind === "kube-dns")
    throw new InputError(`${file}: neither a ConfigMap nor the keys of one (${KUBE_DNS_KEYS.join(", ")})`);
  return { kind: "corefile", source };
}

/** Values with `servers` in a HelmRelease (Flux) or a HelmChartConfig (k3s, RKE2), or those that say what the DNS object of OpenShift says. */
function valuesOfRelease(object: JsonObject, file: string): unknown {
  if (isOpenShiftDns(object)) return valuesOfDns(object, file);
  const spec = member(object, "spec");
  const content = textMember(spec, "valuesContent");
  const values =
    content === "" ? member(spec, "values") : firstValue([...parseDocuments(content)], undefined);
  return isObject(values) && Array.isArray(member(values, "servers")) ? values : undefined;
}

/** A Corefile in the cluster of kops, or in the configuration of the add-on of EKS. */
function corefileAlone(object: JsonObject): string | undefined {
  const text =
    textMember(member(member(object, "spec"), "kubeDNS"), "externalCoreFile") ||
    textMember(object, "corefile");
  return text === "" ? undefined : text;
}

function valuesOfDns(object: JsonObject, file: string): unknown {
  try {
    return valuesOfOpenShiftDns(object);
  } catch (error) {
    if (error instanceof HelmValuesError) throw new InputError(`${file}: ${error.message}`);
    throw error;
  }
}

/** The object of a document, or the items of a List, with the kind that a ConfigMapList leaves out of them. */
function objectsIn(value: unknown): JsonObject[] {
  if (!isObject(value)) return [];
  const kind = textMember(value, "kind");
  if (!kind.endsWith("List")) return [value];
  const inherited = { apiVersion: member(value, "apiVersion"), kind: kind.slice(0, -"List".length) };
  const items = listMember(value, "items").filter((item) => isObject(item));
  // An empty List is a Kubernetes object, too.
  return [...items.map((item) => ({ ...inherited, ...item })), { apiVersion: inherited.apiVersion, kind }];
}

/** @returns `data` of the first ConfigMap that can be migrated; for kube-dns, no key is required */
function findConfigMap(
  objects: readonly JsonObject[],
  kind: MigrationInput["kind"] | undefined,
): ConfigMapData | undefined {
  const all = objects
    .filter((object) => textMember(object, "kind") === "ConfigMap")
    .map((object): ConfigMapData => Object.fromEntries(textEntries(object, "data")));
  if (kind === "kube-dns") return all.find((data) => hasKubeDnsKey(data)) ?? all[0];
  return all.find((data) => data.Corefile !== undefined || hasKubeDnsKey(data));
}

function hasKubeDnsKey(data: JsonObject): boolean {
  return KUBE_DNS_KEYS.some((key) => Object.hasOwn(data, key));
}

/** Also accepts a ConfigMap without apiVersion. */
function isKubernetes(object: JsonObject): boolean {
  const kind = textMember(object, "kind");
  return kind === "ConfigMap" || (kind !== "" && textMember(object, "apiVersion") !== "");
}

/** A document that cannot be parsed may be the ConfigMap, so its error is the one to report. */
function withoutConfigMap(documents: readonly ParsedDocument[], file: string): InputError {
  for (const document of documents)
    if ("problem" in document) return new InputError(`${file}:${document.line}: ${document.problem}`);
  return new InputError(
    `${file}: this Kubernetes YAML has no ConfigMap with a Corefile or the keys of kube-dns (${KUBE_DNS_KEYS.join(", ")}) in 'data': name the file that has it, or read it from the cluster with -configmap NAMESPACE/NAME`,
  );
}

/**
 * @param place the ConfigMap, for messages
 * @param file name of the input, for places in its Corefile; imports are relative to its folder
 * @throws InputError
 */
function fromData(
  data: ConfigMapData,
  kind: MigrationInput["kind"] | undefined,
  place: string,
  file: string,
): MigrationInput {
  if (data.Corefile !== undefined && kind !== "kube-dns")
    return { kind: "corefile", source: { text: data.Corefile, file: nameOfCorefileIn(file) } };
  if (kind === "kube-dns" || hasKubeDnsKey(data))
    return { kind: "kube-dns", config: kubeDnsConfig(data, place) };
  throw new InputError(
    `${place}: the ConfigMap has neither a Corefile nor the keys of kube-dns (${KUBE_DNS_KEYS.join(", ")})`,
  );
}

function kubeDnsConfig(data: ConfigMapData, place: string): KubeDnsConfig {
  try {
    return readKubeDnsConfig(data);
  } catch (error) {
    if (error instanceof KubeDnsConfigError) throw new InputError(`${place}: ${error.message}`);
    throw error;
  }
}

/** @param file set if the text must be YAML or JSON; without it, other text returns no document */
function firstValue([document]: readonly ParsedDocument[], file: string | undefined): unknown {
  if (document === undefined) return undefined;
  if ("value" in document) return document.value;
  if (file === undefined) return undefined;
  throw new InputError(`${file}:${document.line}: ${document.problem}`);
}

/** Milliseconds to wait for the API's answer. */
const PATIENCE = 10_000;

/**
 * Reads a ConfigMap of the cluster.
 * @param place NAMESPACE/NAME
 * @throws InputError
 */
export async function readLive(
  place: string,
  kubeconfig: string,
  kind: MigrationInput["kind"] | undefined,
): Promise<MigrationInput> {
  const [, namespace = "kube-system", name = ""] = /^(?:([^/]+)\/)?([^/]+)$/.exec(place) ?? [];
  try {
    const environment = process.env;
    const client = await makeClusterClient({ kubeconfig, server: "", clock: new SystemClock(), environment });
    try {
      const data = await readConfigMap(client, namespace, name, AbortSignal.timeout(PATIENCE));
      return fromData(data, kind, `ConfigMap ${namespace}/${name}`, place);
    } finally {
      await client.stop();
    }
  } catch (error) {
    if (error instanceof InputError || error instanceof ClusterAccessError)
      throw new InputError(error.message);
    if (error instanceof Error) throw new InputError(`ConfigMap ${namespace}/${name}: ${error.message}`);
    throw error;
  }
}
