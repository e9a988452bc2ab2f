/** Answers queries from etcd's keys (docs/spec/coredns-behaviour.md#skydns-records). */
import { ExtendedErrorCode, extendedError, Name, Rcode, RecordType, SOA } from "../../dns/index.ts";
import { keyOfName } from "../../etcd/skydns/key-path.ts";
import type { Fallthrough, Next, Outcome, Query, Reply, ReplyContent, ZoneList } from "../../plugin/index.ts";
import { AnswerMemo } from "../../plugin/packed/answer-memo.ts";
import { type Found, findKeys, type ItemRules, type KeySource, type LeaseMarks, readItems } from "./items.ts";
import { type Course, type Demand, Missing, type Records, recordsOf, type Supply } from "./records.ts";

export interface EtcdHandlerOptions {
  readonly zones: ZoneList;
  readonly prefix: string;
  /** See `Course`. */
  readonly apexFallsBack: boolean;
  readonly rules: ItemRules;
  readonly authority: AuthorityRules;
  readonly fallthrough: Fallthrough;
  /** The current source of keys. */
  source(): KeySource<Found>;
  /** Whether the keys are mirrored here, with every change reported to {@link EtcdHandler.forgetAnswers}. */
  isKept(): boolean;
  /** etcd is unreachable at the moment: newer keys are missing. */
  isAway(): boolean;
  /** Seconds since 1970: when the keys last changed, as far as it is known. */
  serial(): number;
  staleAnswer(): void;
  failed(error: Error): void;
}

/** The data of SOA records; SkyDNS's configuration may change it. */
export interface AuthorityRules {
  /** Seconds. */
  minTtl: number;
  /** `undefined` for `hostmaster` in the zone. */
  hostmaster: Name | undefined;
}

/** Bound for lookups through the server for one answer; each may take as long as an upstream. */
const MAX_LOOKUPS = 16;

export class EtcdHandler {
  readonly #options: EtcdHandlerOptions;
  readonly #memo = new AnswerMemo();

  constructor(options: EtcdHandlerOptions) {
    this.#options = options;
  }

  handle(query: Query, next: Next): Outcome | Promise<Outcome> {
    if (query.trace === undefined) {
      const known = this.#memo.find(query);
      if (known !== undefined) return known;
    }
    const zone = this.#options.zones.match(query.name);
    if (zone === undefined) {
      query.trace?.note("the name is in none of its zones");
      return next(query);
    }
    if (query.type === RecordType.SOA) {
      query.trace?.note("this plugin returns the zone's SOA record for every name");
      return this.#reply(query, { answer: [this.#authority(zone)] }, true);
    }
    return new Answering(this, this.#options, query, zone, next).run();
  }

  /** Releases the memory of memoized answers when there are no more queries: see `AnswerMemo`. */
  release(releasePages: ((octets: Uint8Array) => void) | undefined): void {
    this.#memo.release(releasePages);
  }

  /** Keys changed: drops all memoized answers. */
  forgetAnswers(): void {
    this.#memo.clear();
  }

  answered(query: Query, zone: Name, records: Records, course: Course, marks: LeaseMarks): Outcome {
    const { answer, additional } = records;
    if (answer.length === 0) query.trace?.note("the name has no records of this type");
    const authority = answer.length === 0 ? [this.#authority(zone)] : [];
    const truncated = course.isTruncated;
    const isLasting = !marks.hasLease && course.lookupsLeft === MAX_LOOKUPS && this.#options.isKept();
    if (!marks.isStale) return this.#reply(query, { answer, additional, authority, truncated }, isLasting);
    this.#options.staleAnswer();
    query.trace?.note("etcd is away, and the lease of a key is over: the answer is stale");
    const edns = query.edns && {
      ...query.edns,
      options: [extendedError(ExtendedErrorCode.STALE_ANSWER, "etcd is away, and the lease is over")],
    };
    return this.#reply(query, { answer, additional, authority, truncated, ...(edns && { edns }) }, false);
  }

  missing(query: Query, zone: Name, next: Next): Outcome | Promise<Outcome> {
    if (this.#options.isAway()) {
      query.trace?.note("there is no key for the name, but etcd is away and may have a new one");
      return this.#reply(query, { rcode: Rcode.SERVFAIL, authority: [this.#authority(zone)] }, false);
    }
    if (this.#options.fallthrough.permits(query.name)) {
      query.trace?.note("there is no key for the name: falls through");
      return next(query);
    }
    query.trace?.note("there is no key for the name");
    const content = { rcode: Rcode.NXDOMAIN, authority: [this.#authority(zone)] };
    return this.#reply(query, content, this.#options.isKept());
  }

  failed(query: Query, zone: Name, error: Error): Outcome {
    query.trace?.note(error.message);
    this.#options.failed(error);
    return this.#reply(query, { rcode: Rcode.SERVFAIL, authority: [this.#authority(zone)] }, false);
  }

  course(zone: Name): Course {
    const { prefix, apexFallsBack } = this.#options;
    return { prefix, zone, apexFallsBack, lookupsLeft: MAX_LOOKUPS, isTruncated: false };
  }

  #reply(query: Query, content: ReplyContent, isLasting: boolean): Reply {
    const reply = query.reply({ authoritative: true, ...content });
    if (isLasting && query.trace === undefined) this.#memo.remember(query, reply);
    return reply;
  }

  #authority(zone: Name) {
    const { authority } = this.#options;
    return SOA.create(zone, authority.minTtl, {
      primary: Name.fromLabels(["ns", "dns"], zone),
      mailbox: authority.hostmaster ?? Name.fromLabels(["hostmaster"], zone),
      serial: this.#options.serial() >>> 0,
      refresh: 7_200,
      retry: 1_800,
      expire: 86_400,
      minimum: authority.minTtl,
    });
  }
}

/** The steps of one answer: synchronous as long as nothing has to be waited for. */
class Answering {
  readonly #handler: EtcdHandler;
  readonly #options: EtcdHandlerOptions;
  readonly #query: Query;
  readonly #zone: Name;
  readonly #next: Next;
  readonly #course: Course;
  readonly #marks: LeaseMarks = { hasLease: false, isStale: false };
  readonly #steps: Generator<Demand, Records, Supply>;

  constructor(handler: EtcdHandler, options: EtcdHandlerOptions, query: Query, zone: Name, next: Next) {
    this.#handler = handler;
    this.#options = options;
    this.#query = query;
    this.#zone = zone;
    this.#next = next;
    this.#course = handler.course(zone);
    this.#steps = recordsOf(this.#course, query.name, query.type);
  }

  run(): Outcome | Promise<Outcome> {
    return this.#advance(() => this.#steps.next());
  }

  #advance(begin: () => IteratorResult<Demand, Records>): Outcome | Promise<Outcome> {
    try {
      let step = begin();
      while (step.done !== true) {
        const supply = this.#supply(step.value);
        if (supply instanceof Promise) return this.#wait(supply);
        step = this.#steps.next(supply);
      }
      return this.#handler.answered(this.#query, this.#zone, step.value, this.#course, this.#marks);
    } catch (error) {
      if (error instanceof Missing) return this.#handler.missing(this.#query, this.#zone, this.#next);
      if (error instanceof Error) return this.#handler.failed(this.#query, this.#zone, error);
      throw error;
    }
  }

  async #wait(supply: Promise<Supply>): Promise<Outcome> {
    let settled: Supply;
    try {
      settled = await supply;
    } catch (error) {
      return this.#advance(() => this.#steps.throw(error));
    }
    return this.#advance(() => this.#steps.next(settled));
  }

  #supply(demand: Demand): Supply | Promise<Supply> {
    if (demand.kind === "look up") return this.#query.lookup(demand.name, demand.type);
    const { prefix, rules } = this.#options;
    const { name, exact } = demand;
    const found = findKeys(this.#options.source(), prefix, keyOfName(prefix, name), name, exact);
    if (found instanceof Promise) return found.then((entries) => readItems(entries, rules, this.#marks));
    return readItems(found, rules, this.#marks);
  }
}
