/** Services of a federation of clusters, as kube-dns answered for them (docs/spec/kube-dns.md#federation). */
import { Name, NameError } from "../../dns/name.ts";
import { Rcode } from "../../dns/numbers.ts";
import { CNAME } from "../../dns/record-table.ts";
import { RecordType } from "../../dns/type-names.ts";
import { ClusterZone } from "../../kubernetes/answers/cluster-zone.ts";
import { kubeDnsAuthority } from "../../kubernetes/answers/kube-dns-answers.ts";
import type { NodePlace } from "../../kubernetes/api/client/node-place.ts";
import { serviceKey } from "../../kubernetes/objects/names.ts";
import type { ClusterStore } from "../../kubernetes/store/store.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Next } from "../../plugin/chain/handler.ts";
import type { Outcome } from "../../plugin/query/outcome.ts";
import type { Query } from "../../plugin/query/query.ts";

export interface FederationOptions {
  readonly domain: Name;
  readonly clock: Clock;
  /** Name of a federation -> its domain, as currently configured. */
  readonly federations: () => ReadonlyMap<string, string>;
  readonly store: () => ClusterStore | undefined;
  /** `undefined` if no node has the labels. */
  readonly findPlace: () => Promise<NodePlace | undefined>;
}

/** RFC 1035. */
const SERVICE_LABEL = /^[a-z]([a-z0-9-]*[a-z0-9])?$/;

export class Federation {
  readonly #options: FederationOptions;
  readonly #zone: ClusterZone;
  #place: NodePlace | undefined;

  constructor(options: FederationOptions) {
    this.#options = options;
    this.#zone = new ClusterZone(options.domain);
  }

  /** @returns `undefined` for a query outside of the federations */
  handle(query: Query, next: Next): Outcome | Promise<Outcome> | undefined {
    const federations = this.#options.federations();
    if (federations.size === 0) return undefined;
    const { domain } = this.#options;
    if (query.name.labelCount !== domain.labelCount + 4 || !query.name.isBelow(domain)) return undefined;
    const [service = "", namespace = "", federation = "", root] = query.name.labelsAbove(domain);
    const remote = federations.get(federation);
    if (remote === undefined || root !== "svc" || !SERVICE_LABEL.test(service)) return undefined;
    if (this.#isServedHere(service, namespace)) {
      const local = Name.fromLabels([service, namespace, "svc"], domain);
      return this.#joined(query, local, next(query.derive({ name: local })));
    }
    return this.#elsewhere(query, [service, namespace, federation, "svc"], remote);
  }

  #isServedHere(name: string, namespace: string): boolean {
    const entry = this.#options.store()?.services.entry(serviceKey(namespace, name));
    switch (entry?.type) {
      case "clusterIP":
        return entry.endpoints.groups.length > 0;
      case "headless":
        return !entry.endpoints.isEmpty;
      default:
        return entry?.hasService === true;
    }
  }

  /** An alias to the name in this cluster, and its records. */
  async #joined(query: Query, local: Name, pending: Outcome | Promise<Outcome>): Promise<Outcome> {
    const outcome = await pending;
    if (outcome.kind !== "reply") return outcome;
    const alias = CNAME.create(query.name, 0, { target: local });
    return query.reply({
      authoritative: true,
      recursionAvailable: true,
      answer: [alias, ...outcome.answer],
      additional: outcome.additional,
    });
  }

  async #elsewhere(query: Query, labels: readonly string[], remote: string): Promise<Outcome> {
    const place = await this.#findPlace();
    if (place === undefined) return this.#noData(query);
    let target: Name;
    try {
      target = Name.fromLabels([...labels, place.zone, place.region], Name.parse(`${remote}.`));
    } catch (error) {
      if (error instanceof NameError) return this.#noData(query);
      throw error;
    }
    const alias = CNAME.create(query.name, 0, { target });
    if (query.type !== RecordType.A && query.type !== RecordType.AAAA)
      return query.reply({ authoritative: true, recursionAvailable: true, answer: [alias] });
    const outcome = await query.lookup(target, query.type);
    if (outcome.kind !== "reply" || outcome.rcode !== Rcode.NOERROR || outcome.answer.length === 0)
      return this.#noData(query);
    return query.reply({
      authoritative: true,
      recursionAvailable: true,
      answer: [alias, ...outcome.answer],
    });
  }

  async #findPlace(): Promise<NodePlace | undefined> {
    this.#place ??= await this.#options.findPlace();
    return this.#place;
  }

  #noData(query: Query): Outcome {
    const seconds = Math.floor(this.#options.clock.wallTime() / 1000);
    return query.reply({
      authoritative: true,
      recursionAvailable: true,
      authority: [kubeDnsAuthority(this.#zone, seconds)],
    });
  }
}
