/** What of a cluster an external zone shows. */
import type { ClusterView } from "../answers/cluster-view.ts";
import type { ExternalZone } from "./external-zone.ts";

export interface ExternalView {
  readonly cluster: ClusterView;
  /** At least one. */
  readonly zones: readonly ExternalZone[];
  /** The zone that targets of reverse names stand in. */
  readonly primary: ExternalZone;
  /** Seconds, 0 to 3600. */
  readonly ttl: number;
  /** Headless services without external addresses are shown by their endpoints (the option `headless`). */
  readonly headless: boolean;
}

/** Unix time of the last change to answers of the external zones, in seconds. */
export function externalSerial({ cluster: { store }, headless }: ExternalView): number {
  return headless ? Math.max(store.serial, store.externalSerial) : store.externalSerial;
}
