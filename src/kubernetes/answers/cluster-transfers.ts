/** Zones of the cluster as a plugin for zone transfers takes them. */
import type { Clock } from "../../lib/time/clock.ts";
import type { TransferSource } from "../../plugin/contract/transfer.ts";
import type { StoreChange } from "../store/tables/store-change.ts";
import { startOfAuthority } from "./apex-answers.ts";
import type { ClusterAnswers } from "./cluster-answers.ts";
import { FollowedZones } from "./followed-zones.ts";
import { shownService, shownServices } from "./service-states.ts";
import { serverRecords, serviceRecords } from "./zone-copy.ts";

/** The zones that hold names of services. Those of addresses are not transferred, nor are names of pods and topology zones. */
export function clusterTransfers({ view, forwardZones }: ClusterAnswers, clock: Clock): FollowedZones {
  const { store } = view;
  return new FollowedZones({
    view,
    clock,
    zones: forwardZones.map((zone) => ({
      name: zone.name,
      live: {
        serial: () => store.serial,
        seal() {
          store.sealSerial(store.serial);
          return startOfAuthority(view, zone);
        },
        server: () => serverRecords(view, zone),
        states: () => shownServices(view),
        state: (key) => shownService(view, key),
        recordsOf: (state) => serviceRecords(state, zone, view.ttl),
      },
    })),
    touched: (change) => (changesServices(change) ? change.services : undefined),
  });
}

/** Several sources as one. */
export function joinTransfers(sources: readonly TransferSource[]): TransferSource {
  return {
    get transferZones() {
      return sources.flatMap(({ transferZones }) => transferZones);
    },
    transfer(apex, knownSerial) {
      for (const source of sources) {
        const transfer = source.transfer(apex, knownSerial);
        if (transfer !== undefined) return transfer;
      }
      return undefined;
    },
    onZoneChange(listener) {
      const ends = sources.map((source) => source.onZoneChange(listener));
      return () => {
        for (const end of ends) end();
      };
    },
  };
}

/** Whether more changed than pods, of which transfers know nothing. */
export function changesServices({ services, namespaces }: StoreChange): boolean {
  return services.length > 0 || namespaces.length > 0;
}
