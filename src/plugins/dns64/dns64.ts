import {
  A,
  AAAA,
  addressOfReverseName,
  CNAME,
  Rcode,
  RecordClass,
  RecordType,
  type ResourceRecord,
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
} from "../../plugin/index.ts";
import {
  type AddressTranslator,
  answersWith,
  LONGEST_TTL,
  translateAnswer,
  ttlOfDenial,
} from "../../plugin/query/address-translation.ts";
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

export class Dns64 implements PluginInstance, AddressTranslator {
  readonly replaced = RecordType.A;
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
    const ttl = ttlOfDenial(outcome);
    const ipv4 = query.lookup(query.name, RecordType.A);
    return ipv4 instanceof Promise
      ? ipv4.then((settled) => this.#answer(query, settled, ttl))
      : this.#answer(query, ipv4, ttl);
  }

  translate(record: ResourceRecord, longestTtl: number): ResourceRecord | undefined {
    const address = A.is(record) ? this.#settings.prefix.embed(record.data.address) : undefined;
    if (address === undefined) return undefined;
    return AAAA.create(record.name, Math.min(record.ttl, longestTtl), { address });
  }

  /** @param outcome the outcome for A records of the name */
  #answer(query: Query, outcome: Outcome, longest: number): Outcome {
    if (outcome.kind === "failed") return query.fail(Rcode.SERVFAIL, outcome.error);
    if (outcome.kind !== "reply" || outcome.rcode === Rcode.SERVFAIL) {
      return query.fail(Rcode.SERVFAIL, new Error("internal lookup failed: no answer for A records"));
    }
    const { prefix } = this.#settings;
    const { answer, count } = translateAnswer(outcome.answer, this, longest);
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
