/** The services of one moment, for answers that take longer than a moment to give (transfers). */

import type { Service } from "../objects/objects.ts";
import type { IndexedService, NamedService } from "../store/services/indexed-service.ts";
import type { ServiceEndpoints } from "../store/services/service-endpoints.ts";
import { copyService } from "../store/tables/service-block.ts";
import type { ClusterView } from "./cluster-view.ts";

/** One service as it was. What happens to the cluster makes new objects, and does not change these. */
export interface ServiceState {
  readonly entry: NamedService;
  readonly service: Service;
  /** Made of octets when it is asked for, and not kept: there may be 150,000 endpoints. */
  endpoints(): ServiceEndpoints;
}

/** The services that a view shows, in the order of their names. */
export function shownServices(view: ClusterView): ServiceState[] {
  const states: ServiceState[] = [];
  for (const entry of view.store.services.entries()) {
    const state = stateOf(view, entry);
    if (state !== undefined) states.push(state);
  }
  return states.sort((one, other) => (one.entry.key < other.entry.key ? -1 : 1));
}

/** One of them, by its key. */
export function shownService(view: ClusterView, key: string): ServiceState | undefined {
  const entry = view.store.services.entry(key);
  return entry && stateOf(view, entry);
}

function stateOf(view: ClusterView, entry: IndexedService): ServiceState | undefined {
  const { service } = entry;
  if (service === undefined || !view.shows(entry)) return undefined;
  if (service.type === "clusterIP" && view.ignores(entry)) return undefined;
  return { entry: entry.copyNames(), service: copyService(service), endpoints: entry.copyEndpoints() };
}
