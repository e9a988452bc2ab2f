/** Words for zones of several clusters (`multicluster`), where they are others than for the zone of one. */
import type { ClusterView } from "../answers/cluster-view.ts";
import type { ClusterName } from "../answers/name-grammar.ts";
import { serviceKey } from "../objects/names.ts";
import { endpointLabel } from "../store/services/service-endpoints.ts";

/** What is otherwise in such a zone. No name of an object has a capital letter or a space, so none of this is part of one. */
const OTHER_WORDS: readonly (readonly [words: RegExp, others: string])[] = [
  [/\bService\b/g, "ServiceImport"],
  [/\bcluster address/g, "clusterset address"],
  [/,( and)? publishNotReadyAddresses is off/g, ""],
  [/and need the option 'zonal'/g, "and a zone of several clusters has none"],
];

/** What is said of a name of one cluster, as it is said of the names in a view. */
export function inWordsOf({ cluster }: ClusterView, words: string): string {
  if (cluster === undefined) return words;
  return OTHER_WORDS.reduce((text, [pattern, others]) => text.replaceAll(pattern, others), words);
}

/** Why a name of such a zone has no records; undefined where the reasons are those that a zone of one cluster has, too. */
export function whyNotImported(view: ClusterView, parsed: ClusterName): string | undefined {
  const { cluster, store } = view;
  if (cluster === undefined) return undefined;
  const { kind, namespace, service: name, endpoint } = parsed;
  if (kind === "pod" || kind === "podNamespace") return "pods have no names in a zone of several clusters";
  if (!view.hasNamespace(namespace)) return undefined;
  const key = serviceKey(namespace, name);
  const entry = store.services.entry(key);
  const full = `${namespace}/${name}`;
  if (entry?.service === undefined) {
    if (name === "" || cluster.store.services.entry(key)?.service === undefined) return undefined;
    return (
      `Service ${full} exists in this cluster, but no ServiceImport of that name: ` +
      "it takes a ServiceExport and a controller of the Multi-Cluster Services API"
    );
  }
  if (entry.service.type === "clusterIP" && entry.service.clusterAddresses.length === 0)
    return `ServiceImport ${full} has no address yet: its spec.ips is empty`;
  if (kind !== "endpoint" || endpoint.startsWith("_") || parsed.cluster !== "") return undefined;
  for (const group of entry.endpoints.groups) {
    for (let index = 0; index < entry.endpoints.visibleCount(group); index++) {
      const label = endpointLabel(group, index);
      if (label.startsWith(`${endpoint}.`))
        return `endpoints of ServiceImport ${full} have their cluster in their names: ${label}.${name}.${namespace}.svc`;
    }
  }
  return undefined;
}
