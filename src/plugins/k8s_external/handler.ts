/** Answers queries with external addresses. */
import type { Name } from "../../dns/name.ts";
import { Rcode } from "../../dns/numbers.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { RecordType } from "../../dns/type-names.ts";
import { EVERY_CHANGE } from "../../kubernetes/answers/answer-scopes.ts";
import { BEGINNING_OF_ADDRESSES, type Resolution } from "../../kubernetes/answers/resolution.ts";
import { aliasRecord } from "../../kubernetes/answers/service-answers.ts";
import { type AnsweredZones, ZoneHandler } from "../../kubernetes/answers/zone-handler.ts";
import type { ExternalAnswers } from "../../kubernetes/external/external-answers.ts";
import { externalScopeOf, forEachExternalScope } from "../../kubernetes/external/external-scopes.ts";
import { externalSerial } from "../../kubernetes/external/external-view.ts";
import type { ExternalZone } from "../../kubernetes/external/external-zone.ts";
import { whyNotExternal } from "../../kubernetes/external/why-not-external.ts";
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

/** Bound for host names in one SRV answer that are resolved; each costs two lookups. */
const MAX_TARGETS = 8;

export class ExternalHandler extends ZoneHandler<ExternalZone, Resolution> {
  readonly #answers: ExternalAnswers;

  constructor(answers: ExternalAnswers, fallthrough: Fallthrough) {
    const zones: AnsweredZones<ExternalZone> = {
      zoneOf: (name) => answers.zoneOf(name),
      names: answers.zoneNames,
      authority: (zone) => answers.authority(zone),
      get isSynced() {
        return answers.view.cluster.store.isSynced;
      },
    };
    super(zones, fallthrough);
    this.#answers = answers;
  }

  protected override get serial(): number {
    return externalSerial(this.#answers.view);
  }

  protected override get reads(): ClusterStore {
    return this.#answers.view.cluster.store;
  }

  protected override answer(query: Query, next: Next, zone: ExternalZone): Outcome | Promise<Outcome> {
    const resolution = this.reads.read(() => this.#answers.resolve(query.name, query.type, zone));
    if (!resolution.exists) return this.missing(query, next, zone, resolution);
    if (resolution === BEGINNING_OF_ADDRESSES) return this.emptyNonTerminal(query, next, zone, resolution);
    if (resolution.alias !== undefined) return this.#follow(query, resolution.alias);
    const { answer, additional, targets } = resolution;
    if (answer.length === 0) {
      query.trace?.note(this.explain(query, zone, resolution));
      return this.withoutRecords(query, zone, Rcode.NOERROR);
    }
    if (targets !== undefined && targets.length > 0) return askForTargets(query, resolution, targets);
    return this.remembered(query, zone, query.reply({ authoritative: true, answer, additional }));
  }

  /** Drops the memoized answers that a change of the cluster affects. */
  forgetAnswers(change: StoreChange): void {
    const { memo } = this;
    if (change.everything || change.namespaces.length > 0) memo.clear();
    else forEachExternalScope(change, (scope) => memo.forget(scope));
  }

  #follow(query: Query, target: Name): Outcome | Promise<Outcome> {
    query.trace?.note(`the load balancer has the host name ${target}: resolved through the server`);
    return followAlias(query, [aliasRecord(query.name, this.#answers.view.cluster.ttl, target)], target);
  }

  protected override whyNot({ name, type }: Query, zone: ExternalZone, resolution: Resolution): string {
    return whyNotExternal(this.#answers.view, zone, name, type, resolution);
  }

  protected override remembered(query: Query, zone: ExternalZone, reply: Reply): Reply {
    const scope = externalScopeOf(query.name, zone);
    // The serial is part of SOA records: those of the zone itself, and those of negative answers.
    const hasSerial = scope === EVERY_CHANGE || reply.answer.length === 0;
    if (hasSerial) this.memo.remember(query, reply, scope, this.serial);
    else this.memo.remember(query, reply, scope);
    return reply;
  }
}

/** Looks up the addresses of host names that SRV records point to. */
function askForTargets(
  query: Query,
  resolution: Resolution,
  targets: readonly Name[],
): Outcome | Promise<Outcome> {
  const asked = targets.slice(0, MAX_TARGETS);
  query.trace?.note(`looks up the addresses of ${asked.join(", ")} through the server`);
  const known: Outcome[] = [];
  const awaited: Promise<Outcome>[] = [];
  for (const target of asked) {
    for (const type of [RecordType.A, RecordType.AAAA]) {
      const outcome = query.lookup(target, type);
      if (outcome instanceof Promise) awaited.push(outcome);
      else known.push(outcome);
    }
  }
  if (awaited.length === 0) return withTargets(query, resolution, known);
  return Promise.all(awaited).then((settled) => withTargets(query, resolution, [...known, ...settled]));
}

/** Adds the addresses that the server found. */
function withTargets(
  query: Query,
  { answer, additional }: Resolution,
  outcomes: readonly Outcome[],
): Outcome {
  const found: ResourceRecord[] = [...additional];
  for (const outcome of outcomes) {
    if (outcome.kind === "reply" && outcome.rcode === Rcode.NOERROR) found.push(...outcome.answer);
  }
  return query.reply({ authoritative: true, answer, additional: found });
}
