import {
  A,
  AAAA,
  addressOfReverseName,
  CNAME,
  Rcode,
  RecordClass,
  RecordType,
  type ResourceRecord,
  RRSIG,
  reverseNameOfIpv4,
} from "../../dns/index.ts";
import {
  type CounterFamily,
  followAlias,
  type Handler,
  type MetricsRegistry,
  type Outcome,
  type PluginInstance,
  type Query,
  type Reply,
} from "../../plugin/index.ts";
import type { Nat64Prefix } from "./nat64-prefix.ts";

export interface Dns64Settings {
  readonly prefix: Nat64Prefix;
  /** Whether to translate names that have IPv6 addresses, too. */
  readonly translateAll: boolean;
  /** Whether to translate for clients over IPv4, too. */
  readonly allowIpv4: boolean;
  /** Whether names of addresses within the prefix are aliases of those of the IPv4 addresses. */
  readonly translatePtr: boolean;
}

/**
 * TTL in seconds of an address without an SOA record (RFC 6147 section 5.1.7), and of an alias for {@link
 * Dns64Settings.translatePtr}.
 */
const LONGEST_TTL = 600;

export class Dns64 implements PluginInstance {
  readonly #settings: Dns64Settings;
  readonly #translated: CounterFamily;

  constructor(settings: Dns64Settings, metrics: MetricsRegistry) {
    this.#settings = settings;
    this.#translated = metrics.counter({
      name: "coredns_dns64_requests_translated_total",
      help: "Queries answered with IPv6 addresses derived from IPv4 addresses.",
      labels: ["server"],
    });
  }

  readonly handle: Handler = (query, next) => {
    if (query.class !== RecordClass.IN) return next(query);
    if (query.type === RecordType.PTR && this.#settings.translatePtr)
      return this.#reverse(query) ?? next(query);
    if (query.type !== RecordType.AAAA) return next(query);
    const reason = this.#reasonToPass(query);
    if (reason !== undefined) {
      query.trace?.note(`passed on: ${reason}`);
      return next(query);
    }
    const outcome = next(query);
    return outcome instanceof Promise
      ? outcome.then((settled) => this.#after(query, settled))
      : this.#after(query, outcome);
  };

  #reasonToPass(query: Query): string | undefined {
    if (query.client.family === 4 && !this.#settings.allowIpv4) return "the client asks over IPv4";
    // RFC 6147 section 5.5: a client that validates needs the signed records.
    if (query.dnssecOk && query.checkingDisabled) return "the client validates signatures itself (DO and CD)";
    return undefined;
  }

  /** @param outcome the outcome for AAAA records of the name */
  #after(query: Query, outcome: Outcome): Outcome | Promise<Outcome> {
    if (outcome.kind !== "reply" || outcome.rcode === Rcode.NXDOMAIN) return outcome;
    if (!this.#settings.translateAll && answersWith(outcome, RecordType.AAAA)) {
      query.trace?.note("the name has IPv6 addresses of its own");
      return outcome;
    }
    const ttl = ttlOfSoa(outcome);
    const ipv4 = query.lookup(query.name, RecordType.A);
    return ipv4 instanceof Promise
      ? ipv4.then((settled) => this.#translate(query, settled, ttl))
      : this.#translate(query, ipv4, ttl);
  }

  /** @param outcome the outcome for A records of the name */
  #translate(query: Query, outcome: Outcome, longest: number): Outcome {
    if (outcome.kind === "failed") return query.fail(Rcode.SERVFAIL, outcome.error);
    if (outcome.kind !== "reply" || outcome.rcode === Rcode.SERVFAIL) {
      return query.fail(Rcode.SERVFAIL, new Error("internal lookup failed: no answer for A records"));
    }
    const { prefix } = this.#settings;
    let count = 0;
    const answer: ResourceRecord[] = [];
    for (const record of outcome.answer) {
      if (A.is(record)) {
        const address = prefix.embed(record.data.address);
        if (address === undefined) continue;
        answer.push(AAAA.create(record.name, Math.min(record.ttl, longest), { address }));
        count++;
      } else if (!isSignatureOfIpv4(record)) {
        answer.push(record);
      }
    }
    query.trace?.note(
      count === 0
        ? "the name has no IPv4 addresses either"
        : `the name has ${count} IPv4 ${count === 1 ? "address" : "addresses"}: embedded in ${prefix}`,
      { count, prefix: `${prefix}` },
    );
    if (query.trace?.leavesNoMark !== true) this.#translated.slot(query.listener.label).increment();
    const { truncated, authority, additional, edns } = outcome;
    return query.reply({ truncated, answer, authority, additional, ...(edns !== undefined && { edns }) });
  }

  /** An alias to the name of the IPv4 address (RFC 6147 section 5.3.1), `undefined` for other names. */
  #reverse(query: Query): Outcome | Promise<Outcome> | undefined {
    const address = addressOfReverseName(query.name);
    const ipv4 = address === undefined ? undefined : this.#settings.prefix.extract(address);
    if (ipv4 === undefined) return undefined;
    const target = reverseNameOfIpv4(ipv4);
    query.trace?.note(`${address} embeds ${ipv4.join(".")}`, { target: `${target}` });
    if (query.trace?.leavesNoMark !== true) this.#translated.slot(query.listener.label).increment();
    return followAlias(query, [CNAME.create(query.name, LONGEST_TTL, { target })], target);
  }
}

function answersWith({ sections: encoded }: Reply, type: number): boolean {
  for (let index = 0; index < encoded.answerCount; index++) if (encoded.typeAt(index) === type) return true;
  return false;
}

/** How long the absence of IPv6 addresses may be cached, from the first SOA record of a denial; seconds. */
function ttlOfSoa(reply: Reply): number {
  const { sections: encoded } = reply;
  const end = encoded.answerCount + encoded.authorityCount;
  for (let index = encoded.answerCount; index < end; index++) {
    if (encoded.typeAt(index) !== RecordType.SOA) continue;
    return reply.uniformTtl >= 0 ? reply.uniformTtl : encoded.ttlAt(index);
  }
  return LONGEST_TTL;
}

/** Signatures of records that were removed are useless. */
function isSignatureOfIpv4(record: ResourceRecord): boolean {
  return RRSIG.is(record) && record.data.typeCovered === RecordType.A;
}
