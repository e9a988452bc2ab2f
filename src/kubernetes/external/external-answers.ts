/**
 * Names of external zones -> records (src/plugins/k8s_external/README.md). Knows neither queries nor replies: a question is a name, a type and the zone
 * that it is in.
 */
import type { Name } from "../../dns/name.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { PTR } from "../../dns/record-table.ts";
import { RecordType } from "../../dns/type-names.ts";
import type { ClusterView } from "../answers/cluster-view.ts";
import {
  answered,
  BEGINNING_OF_ADDRESSES,
  NO_DATA,
  NO_NAMESPACE,
  NO_SERVICE,
  NO_SUCH_ADDRESS,
  NO_SUCH_FORM,
  type Resolution,
} from "../answers/resolution.ts";
import { serviceKey } from "../objects/names.ts";
import type { IndexedService } from "../store/services/indexed-service.ts";
import { addressOfReverseName, prefixOfReverseName } from "../store/tables/reverse-names.ts";
import { resolveServerName, resolveZone, startOfExternalAuthority } from "./external-apex.ts";
import { type ExternalResolution, resolveExternalService } from "./external-service.ts";
import type { ExternalView } from "./external-view.ts";
import { ExternalZone } from "./external-zone.ts";

export interface ExternalAnswersOptions {
  readonly cluster: ClusterView;
  /** At least one. */
  readonly zones: readonly Name[];
  /** The name, relative to each zone, below which the server's own names stand. */
  readonly apex: Name;
  /** Seconds, 0 to 3600. */
  readonly ttl: number;
  readonly headless: boolean;
}

export class ExternalAnswers {
  readonly view: ExternalView;
  readonly #longestFirst: readonly ExternalZone[];

  constructor({ cluster, zones: names, apex, ttl, headless }: ExternalAnswersOptions) {
    const zones = names.map((name) => new ExternalZone(name, apex));
    const primary = zones.find((zone) => !zone.isReverse) ?? zones[0];
    if (primary === undefined) throw new RangeError("a zone is needed");
    this.view = { cluster, zones, primary, ttl, headless };
    this.#longestFirst = [...zones].sort((one, other) => other.name.wire.length - one.name.wire.length);
  }

  get zoneNames(): readonly Name[] {
    return this.#longestFirst.map(({ name }) => name);
  }

  /** The zone that a name belongs to. */
  zoneOf(name: Name): ExternalZone | undefined {
    for (const zone of this.#longestFirst) if (name.isAtOrBelow(zone.name)) return zone;
    return undefined;
  }

  /** What there is at a name of a zone; `owner` of the records is the name as it was asked. */
  resolve(owner: Name, type: number, zone: ExternalZone): ExternalResolution {
    const { view } = this;
    const count = owner.labelCount - zone.name.labelCount;
    if (count === 0) return resolveZone(view, zone, owner, type);
    if (owner.isAtOrBelow(zone.apex)) return resolveServerName(view, zone, owner, type);
    if (zone.isReverse) return this.#resolveReverse(owner, type);

    const namespace = owner.labelText(count - 1);
    const { cluster } = view;
    if (!cluster.hasNamespace(namespace)) return NO_NAMESPACE;
    if (count === 1) return NO_DATA;
    if (count > 4) return NO_SUCH_FORM;
    const entry = cluster.store.services.entry(serviceKey(namespace, owner.labelText(count - 2)));
    if (entry?.service === undefined) return NO_SERVICE;
    const { service } = entry;
    return resolveExternalService({ view, zone, owner, type, entry, service });
  }

  /** For the authority section of an answer without records. */
  authority(zone: ExternalZone): ResourceRecord {
    return startOfExternalAuthority(this.view, zone);
  }

  /** Each service with this external address. A name that is no complete address exists if such an address begins like it. */
  #resolveReverse(owner: Name, type: number): Resolution {
    const key = addressOfReverseName(owner);
    const { cluster, primary, ttl } = this.view;
    if (key === undefined) {
      const prefix = prefixOfReverseName(owner);
      return prefix !== undefined && cluster.store.services.external.hasAddressBelow(prefix)
        ? BEGINNING_OF_ADDRESSES
        : NO_SUCH_ADDRESS;
    }
    const targets = shownNames(cluster, primary, cluster.store.services.external.at(key));
    if (targets.length === 0) return NO_SUCH_ADDRESS;
    if (type !== RecordType.PTR) return NO_DATA;
    return answered(targets.map((target): ResourceRecord => PTR.create(owner, ttl, { target })));
  }
}

function shownNames(cluster: ClusterView, zone: ExternalZone, entries: readonly IndexedService[]): Name[] {
  return entries.flatMap((entry) => (cluster.shows(entry) ? (zone.serviceName(entry) ?? []) : []));
}
