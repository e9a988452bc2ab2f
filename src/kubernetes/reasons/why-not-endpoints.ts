/** Why endpoints are not shown. */

import { countOf } from "../../lib/text/count-of.ts";
import type { ClusterView } from "../answers/cluster-view.ts";
import { parseDashedAddress } from "../objects/addresses.ts";
import type { Service } from "../objects/objects.ts";
import type { IndexedService } from "../store/services/indexed-service.ts";
import { endpointLabel } from "../store/services/service-endpoints.ts";
import { listOf } from "./why-not-words.ts";

/** The option is for clusters that have no use for them. */
const NOT_WATCHED = "'noendpoints' is in force, so its endpoints are not known";

/** Why a service shows no endpoint at all. */
export function whyNoEndpoints(
  view: ClusterView,
  { endpoints, hasEndpointSets }: IndexedService,
  service: Service,
): string {
  if (!view.store.kinds.has("endpoints")) return NOT_WATCHED;
  const labels = new Set<string>();
  for (const group of endpoints.groups)
    for (let index = 0; index < group.count; index++) labels.add(endpointLabel(group, index));
  if (labels.size > 0) {
    const counted = countOf(labels.size, "endpoint");
    const ready = labels.size === 1 ? "not ready" : "none ready";
    return service.publishNotReadyAddresses
      ? counted
      : `${counted}, ${ready}, publishNotReadyAddresses is off`;
  }
  if (hasEndpointSets)
    return "its endpoint slices are empty: the selector matches no pod that has an address";
  return "it has no endpoints: no slice names it, or its selector matches no pod";
}

/** Why no endpoint of this name is shown below a service. */
export function whyNoEndpoint(
  view: ClusterView,
  entry: IndexedService,
  service: Service,
  label: string,
): string {
  const full = `${service.namespace}/${service.name}`;
  const shown: string[] = [];
  let hidden = false;
  for (const group of entry.endpoints.groups) {
    const visible = entry.endpoints.visibleCount(group);
    for (let index = 0; index < group.count; index++) {
      const name = endpointLabel(group, index);
      if (index < visible) shown.push(name);
      else if (name === label) hidden = true;
    }
  }
  if (hidden) return `endpoint ${label} of Service ${full} is not ready, and publishNotReadyAddresses is off`;
  if (shown.length === 0)
    return `Service ${full} shows no endpoint ${label}: ${whyNoEndpoints(view, entry, service)}`;
  const owner = ownerOfPodName(view, service, label);
  return `Service ${full} has no endpoint ${label}; it has ${listOf(shown.sort())}${owner}`;
}

/** A pod of that name that has no hostname is named after its address. */
function ownerOfPodName(view: ClusterView, service: Service, label: string): string {
  if (parseDashedAddress(label) !== undefined) return "";
  return view.store.pods.named(service.namespace, label) === undefined
    ? ""
    : `; pod ${label} needs hostname and subdomain to lend it its name`;
}
