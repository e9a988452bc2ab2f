/**
 * Queries and answers that dnsmasq filters: plain names, reverse names of private networks, and private addresses in answers
 * (dnsmasq(8)).
 */

import type { ResourceRecord } from "../../dns/index.ts";
import { Name } from "../../dns/name.ts";
import { Rcode } from "../../dns/numbers.ts";
import { RecordType } from "../../dns/type-names.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { rest } from "../../plugin/config/arguments.ts";
import { flag, optionList } from "../../plugin/config/options.ts";
import { type ConfigSchema, directive } from "../../plugin/config/schema.ts";
import { domainName } from "../../plugin/config/values.ts";
import { definePlugin, type PluginDefinition } from "../../plugin/contract/define-plugin.ts";
import type { Outcome } from "../../plugin/query/outcome.ts";
import type { Query } from "../../plugin/query/query.ts";
import { ZoneList } from "../../plugin/query/zones.ts";

/** Directive of this command. */
export const FILTER = "dnsmasq_filter";

const domains = optionList({ domains: rest(domainName(), 1) });

const config = directive({
  options: {
    /** Plain names are not forwarded. */
    domain_needed: flag(),
    /** Reverse names of private addresses are not forwarded. */
    bogus_priv: flag(),
    /** SOA and SRV queries, and queries for ANY of a name with an underscore. */
    filterwin2k: flag(),
    /** Answers with private addresses. */
    stop_dns_rebind: flag(),
    /** Private addresses are allowed below these. */
    rebind_domain_ok: domains,
    rebind_localhost_ok: flag(),
    /** Domains with servers of their own. */
    routed: domains,
  },
});

type FilterConfig = typeof config extends ConfigSchema<infer T> ? T : never;

export const QUERY_FILTER: PluginDefinition<unknown> = definePlugin({
  name: FILTER,
  summary: "Does not forward the queries that dnsmasq does not forward.",
  config,
  create(values, { log }) {
    const filter = new QueryFilter(values);
    return {
      handle(query, next) {
        const denial = filter.before(query);
        if (denial !== undefined) return denial;
        const outcome = next(query);
        const look = (settled: Outcome): Outcome =>
          filter.behind(query, settled, (line) => log.warning(line));
        return outcome instanceof Promise ? outcome.then(look) : look(outcome);
      },
    };
  },
});

/** Reverse zones of addresses without a global meaning (RFC 6303). */
const PRIVATE_REVERSE = new ZoneList(
  [
    ...["0", "10", "127", "254.169", "168.192", "2.0.192", "100.51.198", "113.0.203", "255.255.255.255"],
    ...Array.from({ length: 16 }, (_, index) => `${16 + index}.172`),
  ]
    .map((labels) => Name.parse(`${labels}.in-addr.arpa.`))
    .concat(
      [
        "d.f",
        "8.e.f",
        "9.e.f",
        "a.e.f",
        "b.e.f",
        "8.b.d.0.1.0.0.2",
        `${"0.".repeat(31)}0`,
        `1.${"0.".repeat(30)}0`,
      ].map((labels) => Name.parse(`${labels}.ip6.arpa.`)),
    ),
);

class QueryFilter {
  readonly #config: FilterConfig;
  readonly #allowed: ZoneList;
  readonly #routed: ZoneList;

  constructor(values: FilterConfig) {
    this.#config = values;
    this.#allowed = new ZoneList(values.rebind_domain_ok.flatMap((line) => line.domains));
    this.#routed = new ZoneList(values.routed.flatMap((line) => line.domains));
  }

  /** The answer to a query that must not be forwarded. */
  before(query: Query): Outcome | undefined {
    const { name, type } = query;
    const { domain_needed, bogus_priv, filterwin2k } = this.#config;
    if (domain_needed && name.labelCount === 1 && isForAddresses(type))
      return query.reply({ rcode: Rcode.NXDOMAIN });
    // A server configured for reverse names, such as the cluster's, must get the query.
    if (bogus_priv && PRIVATE_REVERSE.contains(name) && !this.#routed.contains(name))
      return query.reply({ authoritative: true, rcode: Rcode.NXDOMAIN });
    const isAny = type === RecordType.ANY && name.toString().includes("_");
    if (filterwin2k && (type === RecordType.SOA || type === RecordType.SRV || isAny))
      return query.reply({ authoritative: true });
    return undefined;
  }

  /** The answer for the client: without records if one of them has a private address. */
  behind(query: Query, outcome: Outcome, warn: (line: string) => void): Outcome {
    const { stop_dns_rebind, rebind_localhost_ok: localhost } = this.#config;
    if (!stop_dns_rebind || outcome.kind !== "reply" || this.#allowed.contains(query.name)) return outcome;
    if (!outcome.answer.some((record) => leadsInside(record, localhost))) return outcome;
    warn(`possible DNS-rebind attack detected: ${query.name}`);
    return query.reply({ authoritative: outcome.authoritative });
  }
}

function isForAddresses(type: number): boolean {
  return type === RecordType.A || type === RecordType.AAAA;
}

function leadsInside({ type, data }: ResourceRecord, localhostIsFine: boolean): boolean {
  if (!isForAddresses(type) || typeof data !== "object" || data === null || !("address" in data))
    return false;
  const octets = parseIpAddress(String(data.address));
  if (octets === undefined) return false;
  const mapped =
    octets.length === 16 && octets.subarray(0, 10).every((octet) => octet === 0) && octets[10] === 0xff;
  const address = mapped ? octets.subarray(12) : octets;
  const isNearZero = address.subarray(0, -1).every((octet) => octet === 0) && (address.at(-1) ?? 0) < 2;
  const isHere = address.length === 4 ? address[0] === 127 || address[0] === 0 : isNearZero;
  return isHere
    ? !localhostIsFine
    : (address.length === 4 ? INSIDE_4 : INSIDE_6).some((network) =>
        network.every((octet, at) => address[at] === octet),
      ) || isInRange(address);
}

/** Networks by their leading octets: private, link-local and documentation networks, as dnsmasq lists them. */
const INSIDE_4: readonly (readonly number[])[] = [
  [10],
  [192, 168],
  [169, 254],
  [192, 0, 2],
  [198, 51, 100],
  [203, 0, 113],
  [255, 255, 255, 255],
];
const INSIDE_6: readonly (readonly number[])[] = [[0x20, 0x01, 0x0d, 0xb8]];

/** Networks whose prefix does not end at an octet. */
function isInRange({ length, 0: first = 0, 1: second = 0 }: Uint8Array): boolean {
  if (length === 4) return first === 172 && second >= 16 && second < 32;
  return first === 0xfd || (first === 0xfe && second >= 0x80);
}
