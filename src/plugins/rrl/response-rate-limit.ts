import { FOLD, octetAt } from "../../dns/octets.ts";
import { WireError } from "../../dns/wire-reader.ts";
import type { Allowance, BucketTable } from "../../lib/collections/bucket-table.ts";
import { type Gatekeeper, gatekeeper } from "../../plugin/chain/handler.ts";
import type { PluginFault } from "../../plugin/contract/plugin-instance.ts";
import {
  type AnswerWitness,
  type CounterSlot,
  DROPPED,
  type Handler,
  type Outcome,
  type PluginInstance,
  type Query,
  type Reply,
  type Site,
} from "../../plugin/index.ts";
import { ClientKey } from "../../plugin/limits/client-key.ts";
import { Offenders } from "../../plugin/limits/offenders.ts";
import { shareBuckets } from "../../plugin/limits/shared-buckets.ts";
import { AnswerKind, answerKind } from "../../plugin/query/answer-kind.ts";
import type { RrlSettings } from "./config.ts";

/** Sets the buckets of requests apart from those of each `AnswerKind`. */
const REQUESTS = 16;
const ALL_KINDS = [
  AnswerKind.RESPONSE,
  AnswerKind.NODATA,
  AnswerKind.NXDOMAIN,
  AnswerKind.REFERRAL,
  AnswerKind.ERROR,
] as const;
const WORDS = ["responses", "nodata", "nxdomains", "referrals", "errors"] as const;

export class ResponseRateLimit implements PluginInstance, AnswerWitness {
  readonly handle: Gatekeeper;
  readonly handleUpdate: Handler;
  readonly witness: AnswerWitness | undefined;
  readonly #settings: RrlSettings;
  /** By `AnswerKind`. */
  readonly #allowances: readonly (Allowance | undefined)[];
  readonly #requestsExceeded: CounterSlot;
  readonly #responsesExceeded: CounterSlot;
  readonly #offenders: Offenders;
  #table: BucketTable;
  #key: ClientKey;

  constructor(settings: RrlSettings, site: Site) {
    this.#settings = settings;
    const { networks, zones } = settings;
    this.#allowances = ALL_KINDS.map((kind) => settings[WORDS[kind]]);
    const counter = (what: string): CounterSlot =>
      site.metrics
        .counter({
          name: `coredns_rrl_${what}_exceeded_total`,
          help: `Counter of ${what} exceeding QPS limit.`,
          labels: [],
        })
        .slot();
    this.#requestsExceeded = counter("requests");
    this.#responsesExceeded = counter("responses");
    const lengths = { 4: networks.ipv4, 6: networks.ipv6 };
    this.#offenders = new Offenders(site.clock, (line) => site.log.warning(line), lengths);
    const shared = shareBuckets(settings.tableSize, site, ({ table, left, right }) => {
      this.#table = table;
      this.#key = new ClientKey(networks, left, right);
    });
    this.#table = shared.table;
    this.#key = new ClientKey(networks, shared.left, shared.right);
    this.handle = gatekeeper(this.#admit, this.#review);
    this.handleUpdate = this.handle;
    // The buckets of responses depend on their names, so each has to pass.
    const isForRequests = this.#allowances.every((allowance) => allowance === undefined);
    const isForAll = site.block.zones.every((zone) => zones.zones.some((own) => zone.isAtOrBelow(own)));
    this.witness = isForRequests && isForAll ? this : undefined;
  }

  stop(): void {
    this.#offenders.stop();
  }

  describeState(): readonly string[] {
    return this.#offenders.describe();
  }

  faults(): readonly PluginFault[] {
    return this.#offenders.faults();
  }

  repeated(): void {
    // Nothing to count: repeated answers have cost a token in `admits`.
  }

  admits(
    names: Int32Array,
    addressAt: number,
    family: 4 | 6,
    _kind: number,
    _size: number,
    now: number,
  ): boolean {
    const { requests } = this.#settings;
    if (requests === undefined) return true;
    const { client, hash } = this.#key;
    client.copy(names, addressAt, family);
    this.#key.reduce();
    this.#key.make(REQUESTS);
    return this.#table.takeIfFree(hash.low, hash.high, requests, now);
  }

  readonly #admit = (query: Query): Outcome | undefined => {
    const { requests, reportOnly } = this.#settings;
    if (requests === undefined || !this.#isLimited(query)) return undefined;
    this.#key.read(query.client);
    this.#key.reduce();
    this.#key.make(REQUESTS);
    if (this.#take(query, requests, "requests") === 0) return undefined;
    if (query.trace?.leavesNoMark !== true) this.#requestsExceeded.increment();
    return reportOnly ? undefined : DROPPED;
  };

  readonly #review = (outcome: Outcome, query: Query): Outcome => {
    if (outcome.kind !== "reply" && outcome.kind !== "failed") return outcome;
    const kind = answerKind(outcome);
    const allowance = this.#allowances[kind];
    // A client that uses a connection has not invented its address.
    if (allowance === undefined || query.takesLongReplies || !this.#isLimited(query)) return outcome;
    this.#key.read(query.client);
    this.#key.reduce();
    this.#key.start(kind);
    this.#addSubject(query, outcome.kind === "reply" ? outcome : undefined, kind);
    this.#key.hash.finish();
    const count = this.#take(query, allowance, WORDS[kind]);
    if (count === 0) return outcome;
    if (query.trace?.leavesNoMark !== true) this.#responsesExceeded.increment();
    const { reportOnly, slipRatio } = this.#settings;
    if (reportOnly) return outcome;
    const { rcode } = outcome;
    if (outcome.kind === "reply") outcome.release();
    return slipRatio > 0 && count % slipRatio === 0 ? query.reply({ rcode, truncated: true }) : DROPPED;
  };

  #isLimited(query: Query): boolean {
    return query.depth === 0 && !query.root.isOwn && this.#settings.zones.matchQuery(query) !== undefined;
  }

  /** @returns 0, or the number of this refusal */
  #take(query: Query, allowance: Allowance, limit: string): number {
    const { hash, client } = this.#key;
    const { trace, receivedAt } = query;
    if (trace?.leavesNoMark === true) {
      const tokens = this.#table.tokens(hash.low, hash.high, allowance, receivedAt);
      trace.note(`${tokens} more '${limit}' of this kind for ${query.client.address}`, { limit, tokens });
      return tokens > 0 ? 0 : 1;
    }
    const count = this.#table.take(hash.low, hash.high, allowance, receivedAt);
    if (count === 0) return 0;
    trace?.note(`above the limit '${limit}' for ${query.client.address}`, { limit });
    this.#offenders.note(hash.low, hash.high, limit, client, "");
    return count;
  }

  /** What equal responses have in common, as in BIND (9.18, "Response Rate Limiting"). */
  #addSubject(query: Query, reply: Reply | undefined, kind: AnswerKind): void {
    const { hash } = this.#key;
    if (kind === AnswerKind.ERROR) return;
    if (kind === AnswerKind.RESPONSE || kind === AnswerKind.REFERRAL) hash.add(query.type);
    if (kind === AnswerKind.RESPONSE || kind === AnswerKind.NODATA)
      addName(hash, query.root.bytes, 12, query.root.nameEnd);
    else {
      const owner = reply && ownerOfAuthority(reply);
      if (owner !== undefined) addName(hash, owner, 0, owner.length);
    }
  }
}

/** A zone's name in wire form. */
function ownerOfAuthority(reply: Reply): Uint8Array | undefined {
  const { sections } = reply;
  if (sections.authorityCount === 0) return undefined;
  try {
    return sections.ownerAt(sections.answerCount).wire;
  } catch (error) {
    // An upstream's records may be malformed: all such answers have one bucket.
    if (error instanceof WireError) return undefined;
    throw error;
  }
}

function addName(hash: ClientKey["hash"], bytes: Uint8Array, start: number, end: number): void {
  let word = 0;
  for (let at = start; at < end; at++) {
    word = (word << 8) | octetAt(FOLD, octetAt(bytes, at));
    if (((at - start) & 3) === 3) hash.add(word);
  }
  hash.add(word);
}
