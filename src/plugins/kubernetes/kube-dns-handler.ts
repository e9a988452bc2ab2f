/** Answers queries from the cluster the way kube-dns did (the option `kube_dns`, docs/spec/kube-dns.md#lookup). */
import { Flag, Rcode, RecordClass } from "../../dns/numbers.ts";
import { CNAME } from "../../dns/record-table.ts";
import { RecordType } from "../../dns/type-names.ts";
import { forEachScope, scopeOf } from "../../kubernetes/answers/answer-scopes.ts";
import { answerWhole } from "../../kubernetes/answers/busy-store.ts";
import type { ClusterAnswers } from "../../kubernetes/answers/cluster-answers.ts";
import type { ClusterZone } from "../../kubernetes/answers/cluster-zone.ts";
import { KubeDnsAnswers } from "../../kubernetes/answers/kube-dns-answers.ts";
import { spansServices } from "../../kubernetes/answers/kube-dns-tree.ts";
import { BEGINNING_OF_ADDRESSES } from "../../kubernetes/answers/resolution.ts";
import { isDenied } from "../../kubernetes/answers/zone-handler.ts";
import type { StoreChange } from "../../kubernetes/store/tables/store-change.ts";
import {
  afterNext,
  type Clock,
  type Fallthrough,
  followAlias,
  type Next,
  type Outcome,
  type Query,
  type Reply,
} from "../../plugin/index.ts";
import { AnswerMemo } from "../../plugin/packed/answer-memo.ts";

export class KubeDnsHandler {
  readonly #answers: ClusterAnswers;
  readonly #records: KubeDnsAnswers;
  readonly #fallthrough: Fallthrough;
  readonly #clock: Clock;
  readonly #memo = new AnswerMemo();

  constructor(answers: ClusterAnswers, fallthrough: Fallthrough, clock: Clock) {
    this.#answers = answers;
    this.#records = new KubeDnsAnswers(answers);
    this.#fallthrough = fallthrough;
    this.#clock = clock;
  }

  /** Bytes of the memoized answers. */
  get rememberedOctets(): number {
    return this.#memo.octets;
  }

  /** Releases the memory of memoized answers when there are no more queries: see `AnswerMemo`. */
  release(releasePages: ((octets: Uint8Array) => void) | undefined): void {
    this.#memo.release(releasePages);
  }

  handle(query: Query, next: Next): Outcome | Promise<Outcome> {
    if (query.trace === undefined) {
      const known = this.#memo.find(query, this.#hour);
      if (known !== undefined) return known;
    }
    const zone = this.#answers.zoneOf(query.name);
    if (zone === undefined) {
      query.trace?.note("the name is in none of its zones");
      return next(query);
    }
    if (!this.#answers.view.store.isSynced) {
      query.trace?.note(
        "the cluster has not been listed completely yet: kube-dns refuses queries until then",
      );
      return query.fail(Rcode.REFUSED);
    }
    const { type } = query;
    if (type === RecordType.AXFR || type === RecordType.IXFR || type === RecordType.ANY) {
      query.trace?.note("kube-dns refuses queries of this type");
      return query.fail(Rcode.REFUSED);
    }
    const answer = () =>
      zone.isReverse ? this.#reverse(query, next, zone) : this.#forward(query, next, zone);
    return answerWhole(query, answer);
  }

  /** Drops the memoized answers that a change of the cluster affects. */
  forgetAnswers(change: StoreChange): void {
    if (change.everything) this.#memo.clear();
    else forEachScope(change, (scope) => this.#memo.forget(scope));
  }

  get #hour(): number {
    return Math.floor(this.#clock.wallTime() / 3_600_000);
  }

  #reverse(query: Query, next: Next, zone: ClusterZone): Outcome | Promise<Outcome> {
    const { store } = this.#answers.view;
    const found = store.read(() => this.#records.resolveReverse(query.name));
    if (found === BEGINNING_OF_ADDRESSES) return this.#beginning(query, next, zone);
    if (query.type === RecordType.PTR && found.answer.length > 0) {
      const reply = query.reply({ recursionAvailable: true, answer: found.answer });
      return this.#remembered(query, zone, reply);
    }
    return this.#missing(query, next, zone);
  }

  /** Names for addresses are below this name: see `ZoneHandler.emptyNonTerminal`. */
  #beginning(query: Query, next: Next, zone: ClusterZone): Outcome | Promise<Outcome> {
    query.trace?.note("addresses of the cluster have names below it, and it has no records of its own");
    const empty = () => query.reply({ authority: [this.#records.authority(zone, this.#seconds)] });
    if (!this.#fallthrough.permits(query.name)) return this.#remembered(query, zone, empty());
    return afterNext(next(query), query, (outcome) => (isDenied(outcome) ? empty() : outcome));
  }

  #forward(query: Query, next: Next, zone: ClusterZone): Outcome | Promise<Outcome> {
    const { answer, additional, alias, exists } = this.#answers.view.store.read(() =>
      this.#records.resolve(query.name, query.type, zone, this.#seconds),
    );
    if (!exists) return this.#missing(query, next, zone);
    if (alias !== undefined) {
      query.trace?.note(`an alias of ${alias}, which is outside the cluster: resolved through the server`);
      const { ttl } = this.#answers.view;
      const record = CNAME.create(query.name, ttl, { target: alias });
      const outcome = followAlias(query, [record], alias);
      return outcome instanceof Promise ? outcome.then(levelled) : levelled(outcome);
    }
    query.trace?.note(
      answer.length === 0 ? "the name has no records of this type" : "a record of the cluster",
    );
    const authority = answer.length === 0 ? [this.#records.authority(zone, this.#seconds)] : [];
    const reply = query.reply({
      authoritative: true,
      recursionAvailable: true,
      answer,
      authority,
      additional,
    });
    return this.#remembered(query, zone, reply);
  }

  #missing(query: Query, next: Next, zone: ClusterZone): Outcome | Promise<Outcome> {
    if (this.#fallthrough.permits(query.name)) {
      query.trace?.note("no such name: falls through");
      return next(query);
    }
    query.trace?.note("no such name");
    const authority = [this.#records.authority(zone, this.#seconds)];
    return this.#remembered(query, zone, query.reply({ rcode: Rcode.NXDOMAIN, authority }));
  }

  /** An answer that depends on several services, or on no service, is computed each time. */
  #remembered(query: Query, zone: ClusterZone, reply: Reply): Reply {
    if (query.class !== RecordClass.IN) return reply;
    if (!zone.isReverse && spansServices(query.name.labelsAbove(zone.name))) return reply;
    // Aliases within the cluster depend on other services as well.
    if (reply.answer.some((record) => CNAME.is(record))) return reply;
    this.#memo.remember(query, reply, scopeOf(query.name, zone), this.#hour);
    return reply;
  }

  get #seconds(): number {
    return Math.floor(this.#clock.wallTime() / 1000);
  }
}

/** All records of an answer get the lowest of their TTLs (docs/spec/kube-dns.md#synthesis). */
function levelled(outcome: Outcome): Outcome {
  if (outcome.kind !== "reply" || outcome.answer.length < 2) return outcome;
  outcome.setFlag(Flag.RA, true);
  const ttl = Math.min(...outcome.answer.map((record) => record.ttl));
  outcome.replaceRecords({ answer: outcome.answer.map((record) => ({ ...record, ttl })) });
  return outcome;
}
