/** Zones of the cluster as a plugin for zone transfers takes them. */
import type { Name } from "../../dns/name.ts";
import { type TransferSource, ZoneNotLoadedError, type ZoneTransfer } from "../../plugin/transfer.ts";
import type { StoreChange } from "../store/store-change.ts";
import { startOfAuthority } from "./apex-answers.ts";
import type { ClusterAnswers } from "./cluster-answers.ts";
import { copyOfZone } from "./zone-copy.ts";

/** The zones that hold names of services. Those of addresses are not transferred, nor are names of pods and topology zones. */
export class ClusterTransfers implements TransferSource {
  readonly #answers: ClusterAnswers;

  constructor(answers: ClusterAnswers) {
    this.#answers = answers;
  }

  get transferZones(): readonly Name[] {
    return this.#answers.forwardZones.map(({ name }) => name);
  }

  transfer(apex: Name): ZoneTransfer | undefined {
    const { view, forwardZones } = this.#answers;
    const zone = forwardZones.find(({ name }) => name.equals(apex));
    if (zone === undefined) return undefined;
    if (!view.store.isSynced) throw new ZoneNotLoadedError(zone.name);
    view.store.sealSerial(view.store.serial);
    const copy = copyOfZone(view, zone);
    return { soa: startOfAuthority(view, zone), records: () => copy };
  }

  onZoneChange(listener: (apex: Name) => void): () => void {
    return this.#answers.view.store.subscribe((change) => {
      if (changesServices(change)) for (const apex of this.transferZones) listener(apex);
    });
  }
}

/** Several sources as one. */
export function joinTransfers(sources: readonly TransferSource[]): TransferSource {
  return {
    get transferZones() {
      return sources.flatMap(({ transferZones }) => transferZones);
    },
    transfer(apex) {
      for (const source of sources) {
        const transfer = source.transfer(apex);
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
