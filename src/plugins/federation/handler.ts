/**
 * Services of a federation of clusters: answered from this cluster if it has them, else by an alias into the
 * federation's domain.
 */
import { CNAME, Name, NameError, Rcode, type ResourceRecord } from "../../dns/index.ts";
import type { NodePlace } from "../../kubernetes/api/client/node-place.ts";
import { followAlias, type Handler, type Next, type Outcome, type Query } from "../../plugin/index.ts";
import type { FederationConfig } from "./config.ts";

const ALIAS_TTL = 0;

/** Finds topology zone and region of this node, possibly later. */
export type FindPlace = () => NodePlace | undefined | Promise<NodePlace | undefined>;

/** @param hasCluster whether the block has a `kubernetes`; without one queries pass */
export function federate(config: FederationConfig, hasCluster: () => boolean, findPlace: FindPlace): Handler {
  return (query, next) => {
    const zone = config.zones.match(query.name);
    if (zone === undefined || !hasCluster()) return next(query);
    const count = query.name.labelCount - zone.labelCount;
    const federation = count < 4 ? "" : query.name.labelText(count - 2);
    const domain = config.federations.get(federation);
    if (domain === undefined) return next(query);
    return new FederatedName(findPlace, query, zone, count, domain).ask(next);
  };
}

class FederatedName {
  readonly #findPlace: FindPlace;
  readonly #query: Query;
  /** Labels of the name before the zone. */
  readonly #labels: readonly string[];
  readonly #domain: Name;
  readonly #local: Name;

  constructor(findPlace: FindPlace, query: Query, zone: Name, count: number, domain: Name) {
    this.#findPlace = findPlace;
    this.#query = query;
    this.#labels = query.name.labelsAbove(zone);
    this.#domain = domain;
    const without = this.#labels.filter((_label, index) => index !== count - 2);
    this.#local = Name.fromLabels(without, zone);
  }

  ask(next: Next): Outcome | Promise<Outcome> {
    this.#query.trace?.note(`a name of a federation: tries ${this.#local} first`);
    const outcome = next(this.#query.derive({ name: this.#local }));
    return outcome instanceof Promise ? outcome.then((settled) => this.#take(settled)) : this.#take(outcome);
  }

  #take(outcome: Outcome): Outcome | Promise<Outcome> {
    if (outcome.kind === "failed") return this.#query.fail(outcome.rcode, outcome.error);
    if (outcome.kind !== "reply") return outcome;
    if (outcome.rcode === Rcode.NXDOMAIN) return this.#elsewhere();
    const renamed = (records: readonly ResourceRecord[]): ResourceRecord[] =>
      records.map((record) =>
        record.name.equals(this.#local) ? { ...record, name: this.#query.name } : record,
      );
    return this.#query.reply({
      rcode: outcome.rcode,
      authoritative: outcome.authoritative,
      truncated: outcome.truncated,
      answer: renamed(outcome.answer),
      authority: outcome.authority,
      additional: outcome.additional,
    });
  }

  /** `svc.ns.fed.svc.<zone>.<region>.<domain>`. */
  #elsewhere(): Outcome | Promise<Outcome> {
    const node = this.#findPlace();
    return node instanceof Promise ? node.then((found) => this.#alias(found)) : this.#alias(node);
  }

  #alias(node: NodePlace | undefined): Outcome | Promise<Outcome> {
    if (node === undefined)
      return this.#query.fail(
        Rcode.SERVFAIL,
        new Error("the zone and region of this node are unknown: set node_labels"),
      );
    let target: Name;
    try {
      target = Name.fromLabels([...this.#labels, node.zone, node.region], this.#domain);
    } catch (error) {
      if (error instanceof NameError) return this.#query.fail(Rcode.SERVFAIL, error);
      throw error;
    }
    this.#query.trace?.note(`this cluster has no such service: continues with ${target}`);
    return followAlias(this.#query, [CNAME.create(this.#query.name, ALIAS_TTL, { target })], target);
  }
}
