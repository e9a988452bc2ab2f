/** The zones that are not up to date, as faults of their plugin. */
import type { Name } from "../../dns/name.ts";
import type { PluginFault } from "../../plugin/contract/plugin-instance.ts";

interface FaultyZone {
  readonly served: { readonly spelled: Name };
  /** Empty if all is well. */
  readonly fault: string;
}

export function faultsOfZones(zones: readonly FaultyZone[]): PluginFault[] {
  return zones.flatMap(({ served, fault }) =>
    fault === "" ? [] : [{ subject: served.spelled.toString(), reason: fault }],
  );
}
