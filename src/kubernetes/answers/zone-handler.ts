/**
 * How queries for the cluster's zones begin and end, whatever the zones are: answers that are remembered, names in no zone, transfers, and names
 * that are not there (src/plugins/k8s_external/README.md and src/plugins/kubernetes/README.md).
 */
import type { Name } from "../../dns/name.ts";
import { Rcode } from "../../dns/numbers.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { RecordType } from "../../dns/type-names.ts";
import { afterNext, type Next } from "../../plugin/chain/handler.ts";
import { AnswerMemo } from "../../plugin/packed/answer-memo.ts";
import { NoNextPluginError, type Outcome } from "../../plugin/query/outcome.ts";
import type { Query } from "../../plugin/query/query.ts";
import type { Reply } from "../../plugin/query/reply.ts";
import { type Fallthrough, ZoneList } from "../../plugin/query/zones.ts";
import type { ClusterStore } from "../store/store.ts";
import { answerWhole } from "./busy-store.ts";

/** In place of an explanation. */
export const BEING_CHANGED = "the cluster is being changed";

/** The zones that a handler answers for. */
export interface AnsweredZones<Zone> {
  zoneOf(name: Name): Zone | undefined;
  readonly names: readonly Name[];
  /** The SOA record of answers without others. */
  authority(zone: Zone): ResourceRecord;
  /** Whether everything has been listed: what is missing then does not exist. */
  readonly isSynced: boolean;
}

/** @typeParam Found what is found for a question */
export abstract class ZoneHandler<Zone, Found> {
  protected readonly memo: AnswerMemo = new AnswerMemo();
  readonly #zones: AnsweredZones<Zone>;
  readonly #names: ZoneList;
  readonly #fallthrough: Fallthrough;

  constructor(zones: AnsweredZones<Zone>, fallthrough: Fallthrough) {
    this.#zones = zones;
    this.#names = new ZoneList(zones.names);
    this.#fallthrough = fallthrough;
  }

  /** What remembered answers take. */
  get rememberedOctets(): number {
    return this.memo.octets;
  }

  /** Returns the memory of remembered answers once no query can reach them: see `AnswerMemo`. */
  release(releasePages: ((octets: Uint8Array) => void) | undefined): void {
    this.memo.release(releasePages);
  }

  handle(query: Query, next: Next): Outcome | Promise<Outcome> {
    if (query.trace === undefined) {
      // Most names of a cluster's clients are in other zones: those are not looked up, and no `Name` is made for them.
      if (this.#names.matchQuery(query) === undefined) return next(query);
      const known = this.memo.find(query, this.serial);
      if (known !== undefined) return known;
    }
    const zone = this.#zones.zoneOf(query.name);
    if (zone === undefined) {
      if (query.trace !== undefined) this.noteOutside(query);
      return next(query);
    }
    if (query.trace !== undefined) this.noteState(query);
    // Transfers are the business of another plugin, which would have answered by now.
    if (query.type === RecordType.AXFR || query.type === RecordType.IXFR) {
      query.trace?.note("zone transfers are not for it to answer");
      return query.fail(Rcode.REFUSED);
    }
    return this.reads.isShared
      ? answerWhole(query, () => this.answer(query, next, zone))
      : this.answer(query, next, zone);
  }

  /** Of the zones, where remembered answers may repeat it. */
  protected get serial(): number | undefined {
    return undefined;
  }

  /** Tells a followed query how far the answers can be trusted. */
  protected noteState(_query: Query): void {
    // Nothing is known of that here.
  }

  /** Tells a followed query that its name is in none of the zones. */
  protected noteOutside({ trace }: Query): void {
    trace?.note("the name is in none of its zones");
  }

  /** Where answers come from. */
  protected abstract get reads(): Pick<ClusterStore, "isShared" | "read" | "tryRead">;

  /** Answers a query for a name in one of the zones. Reads the store before it does anything. */
  protected abstract answer(query: Query, next: Next, zone: Zone): Outcome | Promise<Outcome>;

  /** {@link whyNot}, of one state. */
  protected explain(query: Query, zone: Zone, found: Found): string {
    return this.reads.tryRead(() => this.whyNot(query, zone, found)) ?? BEING_CHANGED;
  }

  /** In words, for a query that is followed: why there is no answer. */
  protected abstract whyNot(query: Query, zone: Zone, found: Found): string;

  /** Keeps a reply until what it rests on changes. */
  protected abstract remembered(query: Query, zone: Zone, reply: Reply): Reply;

  /** What is not there may be elsewhere, and before the first complete listing it may be there after all (docs/spec/kubernetes-dns.md#first-listing). */
  protected missing(query: Query, next: Next, zone: Zone, found: Found): Outcome | Promise<Outcome> {
    if (this.#fallthrough.permits(query.name)) {
      query.trace?.note(`${this.explain(query, zone, found)}: falls through`);
      return next(query);
    }
    if (this.#zones.isSynced) {
      query.trace?.note(this.explain(query, zone, found));
      return this.withoutRecords(query, zone, Rcode.NXDOMAIN);
    }
    query.trace?.note("the cluster has not been listed completely yet: the name may exist after all");
    return this.withoutRecords(query, zone, Rcode.SERVFAIL);
  }

  /**
   * A name that has no records, but names below it. It exists (RFC 8020), so NXDOMAIN would be wrong, from the plugins behind this one as well.
   * These may have records for it: a network has more addresses than those of the cluster.
   */
  protected emptyNonTerminal(query: Query, next: Next, zone: Zone, found: Found): Outcome | Promise<Outcome> {
    if (!this.#fallthrough.permits(query.name)) {
      query.trace?.note(this.explain(query, zone, found));
      return this.withoutRecords(query, zone, Rcode.NOERROR);
    }
    query.trace?.note(
      `${this.explain(query, zone, found)}: falls through, as others may have records for it`,
    );
    return afterNext(next(query), query, (outcome) =>
      isDenied(outcome) ? this.negative(query, zone, Rcode.NOERROR) : outcome,
    );
  }

  protected withoutRecords(query: Query, zone: Zone, rcode: number): Reply {
    const reply = this.negative(query, zone, rcode);
    // That the cluster is not synced yet changes without any of its objects changing.
    return rcode === Rcode.SERVFAIL ? reply : this.remembered(query, zone, reply);
  }

  protected negative(query: Query, zone: Zone, rcode: number): Reply {
    return query.reply({ rcode, authoritative: true, authority: [this.#zones.authority(zone)] });
  }
}

/** Whether the plugins behind say that a name does not exist, or do not answer for it at all. */
export function isDenied(outcome: Outcome): boolean {
  if (outcome.kind === "reply") return outcome.rcode === Rcode.NXDOMAIN;
  return outcome.kind === "failed" && outcome.error instanceof NoNextPluginError;
}
