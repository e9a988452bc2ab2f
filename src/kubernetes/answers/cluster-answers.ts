/**
 * Names of the cluster -> records, by the rules of the Kubernetes DNS specification. Knows neither queries nor replies:
 * a question is a name, a type and the zone that it is in.
 */
import type { Name } from "../../dns/name.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import {
  resolveApex,
  resolveNameServerAddress,
  resolveSchemaVersion,
  startOfAuthority,
} from "./apex-answers.ts";
import { ClusterView, type ClusterViewOptions } from "./cluster-view.ts";
import { ClusterZone } from "./cluster-zone.ts";
import { type ClusterName, type NameForms, parseClusterName } from "./name-grammar.ts";
import { resolvePod } from "./pod-answers.ts";
import { NO_DATA, NO_NAMESPACE, NO_SUCH_FORM, type Resolution } from "./resolution.ts";
import { resolveReverse } from "./reverse-answers.ts";
import { aliasRecord, resolveService } from "./service-answers.ts";

export interface ClusterAnswersOptions extends ClusterViewOptions {
  /** At least one of them is no reverse zone, unless a primary zone is given. */
  readonly zones: readonly Name[];
  /** The zone in the targets of reverse names; the first that is no reverse zone unless given. */
  readonly primary?: Name | undefined;
  /** Serve names of topology zones (the option `zonal`). */
  readonly zonal: boolean;
  /** The zones are those of several clusters, and the store holds what is imported from them (`multicluster`). Default false. */
  readonly multicluster?: boolean;
}

/** A question followed along aliases, as far as the cluster's own zones reach. */
export interface Chase {
  /** CNAME records, in order. */
  readonly aliases: readonly ResourceRecord[];
  /** What is known of the last target; undefined where that lies outside, or the way ended in a circle or nowhere. */
  readonly resolution: Resolution | undefined;
  /** The last target, if it lies outside. */
  readonly outside: Name | undefined;
}

/** Longer ways are given up (docs/spec/kubernetes-dns.md#alias-circle). */
const MAX_ALIASES = 10;

export class ClusterAnswers {
  readonly view: ClusterView;
  /** Longest first. */
  readonly #zones: readonly ClusterZone[];
  readonly #primary: ClusterZone;
  readonly #forms: NameForms;

  constructor(options: ClusterAnswersOptions) {
    const zones = options.zones.map((name) => new ClusterZone(name));
    const primary =
      options.primary === undefined
        ? zones.find((zone) => !zone.isReverse)
        : new ClusterZone(options.primary);
    if (primary === undefined) throw new RangeError("a zone that is not for reverse names is needed");
    this.view = new ClusterView(options);
    this.#zones = zones.sort((left, right) => right.name.wire.length - left.name.wire.length);
    this.#primary = primary;
    this.#forms = { zonal: options.zonal, multicluster: options.multicluster ?? false };
  }

  /** Those zones that hold names of services. */
  get forwardZones(): readonly ClusterZone[] {
    return this.#zones.filter((zone) => !zone.isReverse);
  }

  get zoneNames(): readonly Name[] {
    return this.#zones.map(({ name }) => name);
  }

  /** The zone that a name belongs to. */
  zoneOf(name: Name): ClusterZone | undefined {
    for (const zone of this.#zones) if (name.isAtOrBelow(zone.name)) return zone;
    return undefined;
  }

  /** What the labels of a name in a forward zone mean. */
  parse(name: Name, zone: ClusterZone): ClusterName {
    return parseClusterName(name, zone.name, this.#forms);
  }

  /** What there is at a name of a zone; `owner` of the records is the name as it was asked. */
  resolve(owner: Name, type: number, zone: ClusterZone): Resolution {
    const { view } = this;
    if (zone.isReverse) {
      if (owner.labelCount === zone.name.labelCount)
        return resolveApex(view, zone, this.#primary, owner, type);
      // The SOA record of the zone names it.
      if (owner.equals(zone.nameServer)) return resolveNameServerAddress(view, this.#primary, owner, type);
      if (zone.nameServer.isBelow(owner)) return NO_DATA;
      return resolveReverse(view, this.#primary, owner, type);
    }
    const parsed = this.parse(owner, zone);
    switch (parsed.kind) {
      case "service":
      case "endpoint":
      case "port":
      case "zonal":
        return resolveService({ view, zone, owner, type, parsed });
      case "pod":
      case "podNamespace":
        return resolvePod(view, parsed, owner, type);
      case "namespace":
        return view.hasNamespaceOf(parsed) ? NO_DATA : NO_NAMESPACE;
      case "container":
        return NO_DATA;
      case "apex":
        return resolveApex(view, zone, zone, owner, type);
      case "nameServer":
        return resolveNameServerAddress(view, zone, owner, type);
      case "dnsVersion":
        return resolveSchemaVersion(owner, type);
      case "invalid":
        return NO_SUCH_FORM;
    }
  }

  /** Follows `target`, the alias of `owner`, through the cluster's own zones. */
  chase(owner: Name, target: Name, type: number): Chase {
    const aliases: ResourceRecord[] = [];
    let from = owner;
    let to = target;
    while (aliases.length < MAX_ALIASES) {
      aliases.push(aliasRecord(from, this.view.ttl, to));
      const zone = this.zoneOf(to);
      if (zone === undefined || zone.isReverse) return { aliases, resolution: undefined, outside: to };
      const resolution = this.resolve(to, type, zone);
      if (!resolution.exists) break;
      if (resolution.alias === undefined) return { aliases, resolution, outside: undefined };
      from = to;
      to = resolution.alias;
    }
    return { aliases, resolution: undefined, outside: undefined };
  }

  /** For the authority section of an answer without records. */
  authority(zone: ClusterZone): ResourceRecord {
    return startOfAuthority(this.view, zone);
  }
}
