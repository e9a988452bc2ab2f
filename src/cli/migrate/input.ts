/** What is migrated: a Corefile, a ConfigMap with one, kube-dns's ConfigMap, or values of the Helm chart. */
import { ClusterAccessError } from "../../kubernetes/api/access.ts";
import { parseDocuments } from "../../kubernetes/manifests/parse-documents.ts";
import { isObject, member, textEntries, textMember } from "../../kubernetes/objects/json.ts";
import { SystemClock } from "../../lib/clock.ts";
import { makeClusterClient, readConfigMap } from "../../predecessors/cluster-client.ts";
import { KUBE_DNS_KEYS } from "../../predecessors/kube-dns/config-map.ts";
import type { CorefileSource } from "../../server/configuration/configuration.ts";

export type MigrationInput =
  | { readonly kind: "corefile"; readonly text: string }
  | { readonly kind: "kube-dns"; readonly data: Readonly<Record<string, string>> }
  | { readonly kind: "helm-values"; readonly values: unknown };

/** Nothing in it can be migrated; the message is one line. */
export class InputError extends Error {
  override readonly name = "InputError";
}

/**
 * Finds out what a text is.
 * @param kind what the user says it is, if anything
 * @throws InputError
 */
export function readInput(
  { text, file }: CorefileSource,
  kind: MigrationInput["kind"] | undefined,
): MigrationInput {
  if (kind === "corefile") return { kind, text };
  const value = firstDocument(text, kind === undefined ? undefined : file);
  if (isObject(value) && textMember(value, "kind") === "ConfigMap")
    return fromData(Object.fromEntries(textEntries(value, "data")), kind, file);
  if (
    kind === "helm-values" ||
    (kind === undefined && isObject(value) && Array.isArray(member(value, "servers")))
  )
    return { kind: "helm-values", values: value ?? {} };
  if (isObject(value) && KUBE_DNS_KEYS.some((key) => Object.hasOwn(value, key))) {
    const data = Object.entries(value).map(([key, each]) => [
      key,
      typeof each === "string" ? each : JSON.stringify(each),
    ]);
    return fromData(Object.fromEntries(data), kind, file);
  }
  if (kind === "kube-dns")
    throw new InputError(`${file}: neither a ConfigMap nor the keys of one (${KUBE_DNS_KEYS.join(", ")})`);
  return { kind: "corefile", text };
}

/** @param place for messages */
export function fromData(
  data: Readonly<Record<string, string>>,
  kind: MigrationInput["kind"] | undefined,
  place: string,
): MigrationInput {
  if (data.Corefile !== undefined && kind !== "kube-dns") return { kind: "corefile", text: data.Corefile };
  if (kind === "kube-dns" || KUBE_DNS_KEYS.some((key) => Object.hasOwn(data, key)))
    return { kind: "kube-dns", data };
  throw new InputError(
    `${place}: the ConfigMap has neither a Corefile nor the keys of kube-dns (${KUBE_DNS_KEYS.join(", ")})`,
  );
}

/**
 * @param file where the text has to be YAML or JSON; without it what is neither is no document
 * @throws InputError
 */
function firstDocument(text: string, file: string | undefined): unknown {
  for (const document of parseDocuments(text)) {
    if ("value" in document) return document.value;
    if (file === undefined) return undefined;
    throw new InputError(`${file}:${document.line}: ${document.problem}`);
  }
  return undefined;
}

/** Milliseconds that the API has for its answer. */
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
      return fromData(data, kind, `ConfigMap ${namespace}/${name}`);
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
