/** Zones of a cluster with their histories: what transfers of the cluster's own zones and of external ones have in common. */
import type { Name } from "../../dns/name.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import type { Clock } from "../../lib/time/clock.ts";
import {
  type TransferSource,
  ZoneNotLoadedError,
  type ZoneTransfer,
} from "../../plugin/contract/transfer.ts";
import type { ClusterStore } from "../store/store.ts";
import type { StoreChange } from "../store/tables/store-change.ts";
import type { ClusterView } from "./cluster-view.ts";
import type { ServiceState } from "./service-states.ts";
import { type LiveZone, ZoneHistory } from "./zone-history.ts";

export interface FollowedZonesOptions {
  readonly view: ClusterView;
  readonly clock: Clock;
  readonly zones: readonly { readonly name: Name; readonly live: LiveZone }[];
  /** Keys of the services whose records a change touches, but for namespaces; `undefined` where it touches none at all. */
  readonly touched: (change: StoreChange) => readonly string[] | undefined;
}

interface FollowedZone {
  readonly name: Name;
  readonly live: LiveZone;
  readonly history: ZoneHistory;
}

export class FollowedZones implements TransferSource {
  readonly transferZones: readonly Name[];
  readonly #view: ClusterView;
  readonly #touched: FollowedZonesOptions["touched"];
  readonly #zones: readonly FollowedZone[];
  readonly #listeners = new Set<(apex: Name) => void>();
  #end: (() => void) | undefined;
  #isStopped = false;

  constructor({ view, clock, zones, touched }: FollowedZonesOptions) {
    this.transferZones = zones.map(({ name }) => name);
    this.#view = view;
    this.#touched = touched;
    this.#zones = zones.map(({ name, live }) => {
      const changed = (): void => {
        for (const listener of this.#listeners) listener(name);
      };
      return { name, live, history: new ZoneHistory({ zone: live, clock, changed }) };
    });
  }

  transfer(apex: Name, knownSerial?: number): ZoneTransfer | undefined {
    const zone = this.#zones.find(({ name }) => name.equals(apex));
    if (zone === undefined) return undefined;
    const { store } = this.#view;
    if (!store.isSynced) throw new ZoneNotLoadedError(zone.name);
    const { live, history } = zone;
    // Serials of a replica are not its own, so that two states may have the same: a client could not tell which difference belongs to which state.
    if (store.isReplica || this.#isStopped) return liveCopy(live, store);
    this.#follow();
    return (knownSerial === undefined ? undefined : history.changes(knownSerial)) ?? history.copy();
  }

  onZoneChange(listener: (apex: Name) => void): () => void {
    this.#listeners.add(listener);
    if (!this.#view.store.isReplica) this.#follow();
    return () => {
      this.#listeners.delete(listener);
    };
  }

  stop(): void {
    this.#isStopped = true;
    this.#end?.();
    this.#end = undefined;
    for (const { history } of this.#zones) history.stop();
  }

  #follow(): void {
    this.#end ??= this.#view.store.subscribe((change) => {
      const touched = this.#touched(change);
      if (touched === undefined) return;
      for (const { history } of this.#zones) {
        history.touch(
          change.namespaces.length === 0 ? touched : this.#withNamespaces(touched, change, history),
        );
      }
    });
  }

  /** All services of a namespace change when it comes or goes: those that there are, and those that there were. */
  *#withNamespaces(
    touched: readonly string[],
    { namespaces }: StoreChange,
    history: ZoneHistory,
  ): Generator<string> {
    yield* touched;
    if (!history.isFollowing) return;
    const { services } = this.#view.store;
    for (const namespace of namespaces) {
      for (const { key } of services.namespace(namespace)?.services() ?? []) yield key;
    }
    const names = new Set(namespaces);
    for (const key of history.knownKeys()) if (names.has(key.slice(key.indexOf(".") + 1))) yield key;
  }
}

/** @throws ZoneNotLoadedError where another thread changes the cluster all the while */
function liveCopy(zone: LiveZone, store: ClusterStore): ZoneTransfer {
  const soa = zone.seal();
  const copied = store.tryRead(() => ({ server: zone.server(), states: zone.states() }));
  const { server, states } = copied ?? pieceByPiece(zone, store, soa.name);
  return {
    soa,
    *records() {
      yield* server;
      for (const state of states) yield* zone.recordsOf(state);
    },
  };
}

/**
 * The same where changes come faster than a whole zone can be read: each service as it is when its turn comes. The serial is that of before, so
 * whoever has the copy sees that it is behind once the changes have a serial of their own.
 */
function pieceByPiece(
  zone: LiveZone,
  store: ClusterStore,
  name: Name,
): { readonly server: readonly ResourceRecord[]; readonly states: readonly ServiceState[] } {
  const server = store.tryRead(() => zone.server());
  const keys = store.tryRead(() => Array.from(store.services.entries(), ({ key }) => key).sort());
  if (server === undefined || keys === undefined) throw new ZoneNotLoadedError(name);
  const states: ServiceState[] = [];
  for (const key of keys) {
    const found = store.tryRead(() => ({ state: zone.state(key) }));
    if (found === undefined) throw new ZoneNotLoadedError(name);
    if (found.state !== undefined) states.push(found.state);
  }
  return { server, states };
}
