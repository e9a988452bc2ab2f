import {
  A,
  AAAA,
  addressOfReverseName,
  CNAME,
  Flag,
  Rcode,
  RecordClass,
  RecordType,
  type ResourceRecord,
  reverseNameOfIpv6,
} from "../../dns/index.ts";
import {
  type CounterFamily,
  followAlias,
  type Handler,
  type MetricsRegistry,
  type Next,
  type Outcome,
  type PluginInstance,
  type Query,
  type Reply,
} from "../../plugin/index.ts";
import {
  type AddressTranslator,
  answersWith,
  LONGEST_TTL,
  translateAnswer,
  ttlOfDenial,
} from "../../plugin/query/address-translation.ts";
import type { AddressMap } from "./address-map.ts";

export class Siit implements PluginInstance, AddressTranslator {
  readonly replaced = RecordType.AAAA;
  readonly #addresses: AddressMap;
  readonly #translatePtr: boolean;
  readonly #translated: CounterFamily;

  constructor(addresses: AddressMap, translatePtr: boolean, metrics: MetricsRegistry) {
    this.#addresses = addresses;
    this.#translatePtr = translatePtr;
    this.#translated = metrics.counter({
      name: "coredns_siit_requests_translated_total",
      help: "Queries answered with IPv4 addresses derived from IPv6 addresses.",
      labels: ["server"],
    });
  }

  readonly handle: Handler = (query, next) => {
    if (query.class !== RecordClass.IN) return next(query);
    if (query.type !== RecordType.A)
      return query.type === RecordType.PTR && this.#translatePtr ? this.#reverse(query, next) : next(query);
    const outcome = next(query);
    return outcome instanceof Promise
      ? outcome.then((settled) => this.#after(query, next, settled))
      : this.#after(query, next, outcome);
  };

  /** @param outcome the outcome for A records of the name */
  #after(query: Query, next: Next, outcome: Outcome): Outcome | Promise<Outcome> {
    if (outcome.kind !== "reply") return outcome;
    // A name that does not exist has no IPv6 addresses either; a response that was cut is asked for again over TCP.
    if (outcome.rcode === Rcode.NXDOMAIN || outcome.truncated) return outcome;
    if (answersWith(outcome, RecordType.A)) {
      query.trace?.note("the name has IPv4 addresses of its own");
      return outcome;
    }
    // Asks the rest of the chain instead of the whole block: `dns64` of the same block would ask for A records in
    // turn.
    const ipv6 = next(query.derive({ type: RecordType.AAAA }));
    return ipv6 instanceof Promise
      ? ipv6.then((settled) => this.#answer(query, outcome, settled))
      : this.#answer(query, outcome, ipv6);
  }

  translate(record: ResourceRecord, longestTtl: number): ResourceRecord | undefined {
    const address = AAAA.is(record) ? this.#addresses.toIpv4(record.data.address) : undefined;
    if (address === undefined) return undefined;
    return A.create(record.name, Math.min(record.ttl, longestTtl), { address });
  }

  /** @param outcome the outcome for AAAA records of the name */
  #answer(query: Query, denial: Reply, outcome: Outcome): Outcome {
    if (denial.rcode === Rcode.NOERROR) {
      if (outcome.kind === "failed") return query.fail(Rcode.SERVFAIL, outcome.error);
      // A negative answer would hide that the name may have addresses.
      if (outcome.kind !== "reply" || outcome.rcode === Rcode.SERVFAIL)
        return query.fail(Rcode.SERVFAIL, new Error("no answer for AAAA records"));
    }
    if (outcome.kind !== "reply") return denial;
    if (outcome.rcode !== Rcode.NOERROR)
      return outcome.rcode === Rcode.NXDOMAIN || denial.rcode !== Rcode.NOERROR
        ? denial
        : query.reply({ rcode: outcome.rcode, authoritative: (outcome.flags & Flag.AA) !== 0 });
    const { answer, count } = translateAnswer(outcome.answer, this, ttlOfDenial(denial));
    if (count === 0) {
      query.trace?.note("the name has no IPv6 addresses that embed IPv4 addresses either");
      return denial;
    }
    query.trace?.note(`made ${count} A ${count === 1 ? "record" : "records"} from AAAA records`, { count });
    this.#count(query);
    const { rcode, truncated, authority, additional, edns } = outcome;
    const reply = { rcode, truncated, answer, authority, additional };
    return query.reply({
      ...reply,
      authoritative: (outcome.flags & Flag.AA) !== 0,
      recursionAvailable: (outcome.flags & Flag.RA) !== 0,
      ...(edns !== undefined && { edns }),
    });
  }

  /**
   * An alias to the name of the IPv6 address for an IPv4 address, as RFC 6147 section 5.3.1 does in the other
   * direction.
   */
  #reverse(query: Query, next: Next): Outcome | Promise<Outcome> {
    const outcome = next(query);
    return outcome instanceof Promise
      ? outcome.then((settled) => this.#afterPtr(query, settled))
      : this.#afterPtr(query, outcome);
  }

  #afterPtr(query: Query, outcome: Outcome): Outcome | Promise<Outcome> {
    if (outcome.kind !== "reply" || answersWith(outcome, RecordType.PTR)) return outcome;
    const ipv4 = addressOfReverseName(query.name);
    const ipv6 = ipv4 === undefined ? undefined : this.#addresses.toIpv6(ipv4);
    if (ipv6 === undefined) return outcome;
    const target = reverseNameOfIpv6(ipv6);
    query.trace?.note(`${ipv4} is an alias of the name of its IPv6 address`, { target: `${target}` });
    this.#count(query);
    return followAlias(query, [CNAME.create(query.name, LONGEST_TTL, { target })], target);
  }

  #count(query: Query): void {
    if (query.trace?.leavesNoMark !== true) this.#translated.slot(query.listener.label).increment();
  }
}
