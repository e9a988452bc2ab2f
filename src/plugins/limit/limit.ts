import { Rcode } from "../../dns/numbers.ts";
import type { BucketTable } from "../../lib/collections/bucket-table.ts";
import { type Gatekeeper, gatekeeper } from "../../plugin/chain/handler.ts";
import type { PluginFault } from "../../plugin/contract/plugin-instance.ts";
import {
  type AnswerWitness,
  DROPPED,
  type Handler,
  type Outcome,
  type PluginInstance,
  type Query,
  type Site,
} from "../../plugin/index.ts";
import { ClientKey, ExemptNetworks } from "../../plugin/limits/client-key.ts";
import { Offenders } from "../../plugin/limits/offenders.ts";
import { shareBuckets } from "../../plugin/limits/shared-buckets.ts";
import { AnswerKind, answerKind } from "../../plugin/query/answer-kind.ts";
import { namespaceOf, workloadOf } from "./client-pod.ts";
import { CLASSES, type LimitClass, type LimitSettings, type Rate } from "./config.ts";
import { LimitMetrics, observeTable, type Result } from "./limit-metrics.ts";

/** A limit, with the number that sets its buckets apart from those of others. */
interface Quota {
  readonly name: LimitClass;
  readonly domain: number;
  readonly rate: Rate;
}

/** Buckets of queries over connections: no client can invent an address there. */
const OVER_STREAM = 1;

/**
 * Each client has a bucket of tokens for each limit. A query costs a token of `all`, an answer one of its class. An answer that is repeated
 * in front of the chain costs the same: see {@link admits}.
 */
export class Limit implements PluginInstance, AnswerWitness {
  readonly handle: Gatekeeper;
  readonly handleUpdate: Handler;
  readonly witness: AnswerWitness | undefined;
  readonly #settings: LimitSettings;
  readonly #metrics: LimitMetrics;
  readonly #offenders: Offenders;
  readonly #exempt: ExemptNetworks;
  readonly #exemptNamespaces: ReadonlySet<string>;
  readonly #byPod: boolean;
  readonly #all: Quota | undefined;
  readonly #large: Quota | undefined;
  /** By `AnswerKind`. */
  readonly #ofKind: readonly (Quota | undefined)[];
  readonly #forgetCollector: () => void;
  #table: BucketTable;
  #key: ClientKey;
  /** The pod of the query at hand, "" if it is not known or does not matter. */
  #pod = "";

  constructor(settings: LimitSettings, site: Site) {
    this.#settings = settings;
    const quotaOf = (name: LimitClass): Quota | undefined => {
      const rate = settings.allowances[name];
      return rate && { name, rate, domain: CLASSES.indexOf(name) << 1 };
    };
    this.#all = quotaOf("all");
    this.#large = quotaOf("large");
    const ofKind: (Quota | undefined)[] = [];
    ofKind[AnswerKind.RESPONSE] = undefined;
    ofKind[AnswerKind.NODATA] = quotaOf("nodata");
    ofKind[AnswerKind.NXDOMAIN] = quotaOf("nxdomain");
    ofKind[AnswerKind.REFERRAL] = quotaOf("referral");
    ofKind[AnswerKind.ERROR] = quotaOf("error");
    this.#ofKind = ofKind;
    this.#exempt = new ExemptNetworks(settings.exempt);
    this.#exemptNamespaces = new Set(settings.exemptNamespaces);
    this.#byPod = settings.by === "namespace" || settings.by === "workload";
    const used = CLASSES.filter((name) => settings.allowances[name] !== undefined);
    this.#metrics = new LimitMetrics(used, site.metrics);
    const { ipv4, ipv6 } = settings.networks;
    this.#offenders = new Offenders(site.clock, (line) => site.log.warning(line), { 4: ipv4, 6: ipv6 });
    const shared = shareBuckets(settings.tableSize, site, ({ table, left, right }) => {
      this.#table = table;
      this.#key = new ClientKey(settings.networks, left, right);
    });
    this.#table = shared.table;
    this.#key = new ClientKey(settings.networks, shared.left, shared.right);
    this.#forgetCollector = observeTable(() => this.#table, site.block.zones.join(","), site.metrics);
    this.handle = gatekeeper(this.#admit, this.#review);
    this.handleUpdate = this.handle;
    this.witness = this;
  }

  stop(): void {
    this.#offenders.stop();
    this.#forgetCollector();
  }

  describeState(): readonly string[] {
    return this.#offenders.describe();
  }

  faults(): readonly PluginFault[] {
    return this.#offenders.faults();
  }

  /** A repeated answer has cost its tokens in {@link admits}. */
  repeated(): void {
    // Nothing to count.
  }

  admits(
    names: Int32Array,
    addressAt: number,
    family: 4 | 6,
    kind: number,
    size: number,
    now: number,
  ): boolean {
    const { client } = this.#key;
    client.copy(names, addressAt, family);
    if (this.#exempt.has(client)) return true;
    this.#key.reduce();
    const all = this.#all;
    const quota = this.#ofKind[kind];
    const large = size > this.#settings.largeSize ? this.#large : undefined;
    if (quota === undefined && large === undefined)
      return all === undefined || this.#takesIfFree(all.domain, all.rate, now);
    // A refused query goes through the chain, and pays there: it must not have paid for a part here.
    if (!this.#has(all, now) || !this.#has(quota, now) || !this.#has(large, now)) return false;
    if (all !== undefined) this.#takesIfFree(all.domain, all.rate, now);
    if (quota !== undefined) this.#takesIfFree(quota.domain, quota.rate, now);
    if (large !== undefined) this.#takesIfFree(large.domain, large.rate, now);
    return true;
  }

  #takesIfFree(domain: number, rate: Rate, now: number): boolean {
    const { hash } = this.#key;
    this.#key.make(domain);
    return this.#table.takeIfFree(hash.low, hash.high, rate, now);
  }

  #has(quota: Quota | undefined, now: number): boolean {
    if (quota === undefined) return true;
    const { hash } = this.#key;
    this.#key.make(quota.domain);
    return this.#table.tokens(hash.low, hash.high, quota.rate, now) > 0;
  }

  readonly #admit = (query: Query): Outcome | undefined => {
    const all = this.#all;
    if (all === undefined || !this.#isLimited(query)) return undefined;
    return this.#pay(query, all, query.receivedAt);
  };

  readonly #review = (outcome: Outcome, query: Query): Outcome => {
    if (outcome.kind !== "reply" && outcome.kind !== "failed") return outcome;
    const quota = this.#ofKind[answerKind(outcome)];
    const large =
      this.#large !== undefined && outcome.kind === "reply" && outcome.size > this.#settings.largeSize
        ? this.#large
        : undefined;
    if ((quota ?? large) === undefined || !this.#isLimited(query)) return outcome;
    const refused =
      (quota && this.#pay(query, quota, query.receivedAt)) ??
      (large && this.#pay(query, large, query.receivedAt));
    if (refused === undefined) return outcome;
    if (outcome.kind === "reply") outcome.release();
    return refused;
  };

  /** Reads the client. Lookups of the server on behalf of a query cost nothing. */
  #isLimited(query: Query): boolean {
    if (query.depth > 0 || query.root.isOwn) return false;
    const { client } = this.#key;
    this.#key.read(query.client);
    if (this.#exempt.has(client)) {
      query.trace?.note("the client's network is exempt");
      return false;
    }
    this.#key.reduce();
    this.#pod = "";
    if (!this.#byPod) return true;
    const namespace = namespaceOf(query);
    if (namespace === "") return true;
    if (this.#exemptNamespaces.has(namespace)) {
      query.trace?.note(`namespace ${namespace} is exempt`);
      return false;
    }
    this.#pod = this.#settings.by === "namespace" ? namespace : workloadOf(query, namespace);
    return true;
  }

  /** @returns what becomes of the query if it is above the limit */
  #pay(query: Query, quota: Quota, now: number): Outcome | undefined {
    const { name, domain, rate } = quota;
    const { hash } = this.#key;
    const bucket = domain | (query.takesLongReplies ? OVER_STREAM : 0);
    if (this.#pod === "") this.#key.make(bucket);
    else {
      hash.start(~bucket);
      hash.addText(this.#pod);
      hash.finish();
    }
    const { trace } = query;
    if (trace !== undefined) return this.#payTraced(query, quota, now);
    const count = this.#table.take(hash.low, hash.high, rate, now);
    if (count === 0) return undefined;
    this.#offenders.note(hash.low, hash.high, name, this.#key.client, this.#pod);
    const result = this.#resultOf(query, count);
    this.#metrics.count(name, result);
    return outcomeOf(query, result);
  }

  #payTraced(query: Query, { name, rate }: Quota, now: number): Outcome | undefined {
    const { hash, client } = this.#key;
    const tokens = this.#table.tokens(hash.low, hash.high, rate, now);
    const who = this.#pod === "" ? query.client.address : this.#pod;
    const left = `${tokens} of ${rate.tokens} tokens of '${name}' left for ${who}`;
    const isUnseen = query.trace?.leavesNoMark === true;
    const count = isUnseen ? (tokens > 0 ? 0 : 1) : this.#table.take(hash.low, hash.high, rate, now);
    if (count === 0) {
      query.trace?.note(left, { class: name, tokens, client: who });
      return undefined;
    }
    const result = this.#resultOf(query, count);
    const verdict =
      result === "passed" ? "above the limit, but dry_run lets it pass" : `above the limit: ${result}`;
    query.trace?.note(`${left}; ${verdict}`, { class: name, tokens, client: who, result });
    if (!isUnseen) {
      this.#offenders.note(hash.low, hash.high, name, client, this.#pod);
      this.#metrics.count(name, result);
    }
    return outcomeOf(query, result);
  }

  /** A truncated answer makes no sense over a connection: it asks the client to use one. */
  #resultOf(query: Query, count: number): Result {
    const { action, slip, dryRun } = this.#settings;
    if (dryRun) return "passed";
    if (action === "drop") return "dropped";
    if (action === "refused" || query.takesLongReplies) return "refused";
    return action === "tc" || count % slip === 0 ? "truncated" : "dropped";
  }
}

function outcomeOf(query: Query, result: Result): Outcome | undefined {
  switch (result) {
    case "passed":
      return undefined;
    case "dropped":
      return DROPPED;
    case "refused":
      return query.reply({ rcode: Rcode.REFUSED });
    case "truncated":
      return query.reply({ truncated: true });
  }
}
