/** Names as people type them, without the cluster's zone: they reach a Service by the search path of a pod alone. */
import type { Name } from "../../dns/name.ts";
import type { ClusterAnswers } from "../answers/cluster-answers.ts";
import type { ClusterView } from "../answers/cluster-view.ts";
import { isReverseZone } from "../answers/cluster-zone.ts";
import { serviceKey } from "../objects/names.ts";

/** @returns a sentence without full stop; `undefined` if the name is not that of a Service */
export function meantService({ view, zoneNames }: ClusterAnswers, name: Name): string | undefined {
  const zone = zoneNames.find((each) => !isReverseZone(each));
  const labels = name.toString().toLowerCase().split(".").slice(0, -1);
  const [service = "", namespace, word, ...more] = labels;
  if (zone === undefined || service === "" || more.length > 0 || (word !== undefined && word !== "svc"))
    return undefined;
  const found = namespace === undefined ? onlyNamespaceWith(view, service) : namespace;
  if (found === undefined || !hasService(view, found, service)) return undefined;
  return (
    `Service ${found}/${service} exists: ask for ${service}.${found}.svc.${zone}, or give -from ` +
    `${namespace === undefined ? found : "NAMESPACE"}/POD to follow the search path of a pod`
  );
}

function onlyNamespaceWith(view: ClusterView, service: string): string | undefined {
  const found: string[] = [];
  for (const { name } of view.store.objects("namespaces"))
    if (hasService(view, name, service)) found.push(name);
  return found.length === 1 ? found[0] : undefined;
}

function hasService(view: ClusterView, namespace: string, name: string): boolean {
  const entry = view.store.services.entry(serviceKey(namespace, name));
  return entry?.service !== undefined && view.shows(entry);
}
