/** Answers queries from the cluster. */
import type { Name } from "../../dns/name.ts";
import { Rcode } from "../../dns/numbers.ts";
import { EVERY_CHANGE, forEachScope, scopeOf } from "../../kubernetes/answers/answer-scopes.ts";
import type { ClusterAnswers } from "../../kubernetes/answers/cluster-answers.ts";
import type { ClusterZone } from "../../kubernetes/answers/cluster-zone.ts";
import { BEGINNING_OF_ADDRESSES, type Resolution } from "../../kubernetes/answers/resolution.ts";
import { resolveWildcard } from "../../kubernetes/answers/wildcard-answers.ts";
import { type AnsweredZones, BEING_CHANGED, ZoneHandler } from "../../kubernetes/answers/zone-handler.ts";
import { meantService } from "../../kubernetes/reasons/meant-service.ts";
import { whyAliasEnds, whyNot } from "../../kubernetes/reasons/why-not.ts";
import { whySo } from "../../kubernetes/reasons/why-so.ts";
import type { ClusterStore } from "../../kubernetes/store/store.ts";
import type { StoreChange } from "../../kubernetes/store/tables/store-change.ts";
import {
  type Fallthrough,
  followAlias,
  type Next,
  type Outcome,
  type Query,
  type Reply,
} from "../../plugin/index.ts";

export class KubernetesHandler extends ZoneHandler<ClusterZone, Resolution> {
  readonly #answers: ClusterAnswers;
  readonly #awaited: () => readonly string[] | undefined;
  readonly #wildcards: boolean;

  /**
   * @param awaited lists that the API has not delivered yet, and why; `undefined` without an API @param wildcards
   * whether to answer names with `*` and `any` (the option `wildcards`)
   */
  constructor(
    answers: ClusterAnswers,
    fallthrough: Fallthrough,
    awaited: () => readonly string[] | undefined = () => undefined,
    wildcards = false,
  ) {
    const zones: AnsweredZones<ClusterZone> = {
      zoneOf: (name) => answers.zoneOf(name),
      names: answers.zoneNames,
      authority: (zone) => answers.authority(zone),
      get isSynced() {
        return answers.view.store.isSynced;
      },
    };
    super(zones, fallthrough);
    this.#answers = answers;
    this.#awaited = awaited;
    this.#wildcards = wildcards;
  }

  protected override get serial(): number {
    return this.#answers.view.store.serial;
  }

  protected override get reads(): ClusterStore {
    return this.#answers.view.store;
  }

  protected override answer(query: Query, next: Next, zone: ClusterZone): Outcome | Promise<Outcome> {
    const { name, type } = query;
    const { reads } = this;
    const wildcard = this.#wildcards
      ? reads.read(() => resolveWildcard(this.#answers, name, type, zone))
      : undefined;
    if (wildcard !== undefined && wildcard.answer.length > 0) {
      query.trace?.note("a name with wildcards: answers with the records of all matching names");
      const { answer, additional } = wildcard;
      // Not memoized: the answer depends on all matching names.
      return query.reply({ authoritative: true, answer, additional });
    }
    const resolution = wildcard ?? this.#resolve(name, type, zone);
    if (!resolution.exists) return this.missing(query, next, zone, resolution);
    if (resolution === BEGINNING_OF_ADDRESSES) return this.emptyNonTerminal(query, next, zone, resolution);
    if (resolution.alias !== undefined) return this.#follow(query, zone, resolution.alias);
    if (resolution.answer.length === 0) {
      query.trace?.note(this.explain(query, zone, resolution));
      return this.withoutRecords(query, zone, Rcode.NOERROR);
    }
    const { answer, additional } = resolution;
    if (query.trace !== undefined) {
      const why = reads.tryRead(() => whySo({ answers: this.#answers, zone, name, type }));
      query.trace.note(why ?? BEING_CHANGED);
    }
    return this.remembered(query, zone, query.reply({ authoritative: true, answer, additional }));
  }

  /** Drops the memoized answers that a change of the cluster affects. */
  forgetAnswers(change: StoreChange): void {
    const memo = this.memo;
    if (change.everything || change.namespaces.length > 0) memo.clear();
    else forEachScope(change, (scope) => memo.forget(scope));
  }

  protected override remembered(query: Query, zone: ClusterZone, reply: Reply): Reply {
    if (this.#wildcards && /(^|[._])(\*|any)\./i.test(query.name.toString())) return reply;
    const scope = scopeOf(query.name, zone);
    // The serial is part of SOA records: those of the zone itself, and those of negative answers.
    const hasSerial = scope === EVERY_CHANGE || reply.answer.length === 0;
    const { serial } = this.#answers.view.store;
    if (hasSerial) this.memo.remember(query, reply, scope, serial);
    else this.memo.remember(query, reply, scope);
    return reply;
  }

  /** Notes the age of the cluster's state. Manifests have no age. */
  protected override noteState({ trace }: Query): void {
    const { store } = this.#answers.view;
    const awaited = this.#awaited();
    if (awaited === undefined || trace === undefined) return;
    const ages = Array.from(store.kinds, (kind) => store.age(kind) ?? Infinity);
    const age = Math.round(Math.max(...ages) / 100) / 10;
    if (store.isSynced) trace.note(`last message from the Kubernetes API: ${age} s ago`, { age });
    else trace.note(`not listed yet: ${awaited.join(", ") || "everything"}`, { awaited });
  }

  protected override noteOutside(query: Query): void {
    super.noteOutside(query);
    const meant = this.reads.tryRead(() => meantService(this.#answers, query.name));
    if (meant !== undefined) query.trace?.note(meant);
  }

  protected override whyNot({ name, type }: Query, zone: ClusterZone, resolution: Resolution): string {
    return whyNot({ answers: this.#answers, zone, name, type, resolution });
  }

  #resolve(name: Name, type: number, zone: ClusterZone): Resolution {
    const { reads } = this;
    if (!reads.isShared) return this.#answers.resolve(name, type, zone);
    return reads.read(() => this.#answers.resolve(name, type, zone));
  }

  #follow(query: Query, zone: ClusterZone, alias: Name): Outcome | Promise<Outcome> {
    const { aliases, resolution, outside } = this.reads.read(() =>
      this.#answers.chase(query.name, alias, query.type),
    );
    if (outside !== undefined) {
      query.trace?.note(`an alias of ${outside}, which is outside the cluster: resolved through the server`);
      return followAlias(query, aliases, outside);
    }
    if (resolution === undefined) {
      const why = query.trace && this.reads.tryRead(() => whyAliasEnds(this.#answers, alias, query.type));
      query.trace?.note(why ?? BEING_CHANGED);
      // Not memoized: the answer depends on all the names along the way.
      return this.negative(query, zone, Rcode.NOERROR);
    }
    query.trace?.note(`an alias of ${alias}, a name of the cluster`);
    const { answer, additional } = resolution;
    const authority = answer.length === 0 ? [this.#answers.authority(zone)] : [];
    return query.reply({ authoritative: true, answer: [...aliases, ...answer], authority, additional });
  }
}
