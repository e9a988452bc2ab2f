import type { Allowance } from "../../lib/collections/bucket-table.ts";
import { type IpPrefix, parseIpPrefix } from "../../lib/net/prefix-set.ts";
import { optionalWhen } from "../../plugin/config/arguments.ts";
import {
  choice,
  directive,
  flag,
  integer,
  option,
  optional,
  optionList,
  required,
  rest,
  single,
  text,
  type Value,
  ValueProblem,
} from "../../plugin/index.ts";

/** The classes of answers with a limit of their own; `all` are queries. */
export const CLASSES = ["all", "nxdomain", "nodata", "error", "referral", "large"] as const;
export type LimitClass = (typeof CLASSES)[number];

export const ACTIONS = ["tc", "refused", "drop", "slip"] as const;
export type LimitAction = (typeof ACTIONS)[number];

export interface LimitSettings {
  readonly allowances: Readonly<Partial<Record<LimitClass, Rate>>>;
  /** Octets above which an answer is large. */
  readonly largeSize: number;
  readonly by: "address" | "prefix" | "namespace" | "workload";
  readonly networks: { readonly ipv4: number; readonly ipv6: number };
  readonly action: LimitAction;
  /** Each so many refused queries over UDP get a truncated answer, with `slip`. */
  readonly slip: number;
  readonly exempt: readonly IpPrefix[];
  readonly exemptNamespaces: readonly string[];
  readonly tableSize: number;
  readonly dryRun: boolean;
}

export interface Rate extends Allowance {
  readonly perSecond: number;
  readonly tokens: number;
}

const MOST_PER_SECOND = 1_000_000;
/** 20 bytes each. */
export const MOST_BUCKETS = 1_600_000;
const BUCKETS = 100_000;
/** Answers of this size fit into a datagram without EDNS (RFC 1035 section 4.2.1). */
const LARGE_SIZE = 512;
/** BIND's defaults for `rate-limit`. */
const PREFIX = { ipv4: 24, ipv6: 56 };
const SLIP = 2;
const MOST_SLIP = 10;

const rate = {
  rate: required(integer({ min: 1, max: MOST_PER_SECOND })),
  burst: optional(integer({ min: 1, max: MOST_PER_SECOND })),
};

const network: Value<IpPrefix> = {
  expected: "an IP address, or a network such as 10.0.0.0/8 or 2001:db8::/32",
  parse: (word) => parseIpPrefix(word) ?? new ValueProblem(`'${word}' is not an IP address or a network`),
};

export const limitDirective = directive({
  options: {
    all: option(rate),
    nxdomain: option(rate),
    nodata: option(rate),
    error: option(rate),
    referral: option(rate),
    large: option(rate),
    large_size: single(integer({ min: 12, max: 65_535 }), LARGE_SIZE),
    by: option({
      client: required(choice(["address", "prefix", "namespace", "workload"])),
      ipv4: optional(integer({ min: 1, max: 32 })),
      ipv6: optional(integer({ min: 1, max: 128 })),
    }),
    action: option({
      action: required(choice(ACTIONS)),
      n: optionalWhen(integer({ min: 1, max: MOST_SLIP }), () => true),
    }),
    exempt: optionList({ network: rest(network, 1) }),
    exempt_namespace: optionList({ namespace: rest(text("a namespace"), 1) }),
    table_size: single(integer({ min: 1, max: MOST_BUCKETS }), BUCKETS),
    dry_run: flag(),
  },
  check(config, report, at) {
    if (CLASSES.every((one) => config[one] === undefined))
      report.error("LIMIT_WITHOUT_RATE", at(), "limit has no rate", {
        expected: `one of ${CLASSES.join(", ")} with queries per second, such as 'all 100'`,
      });
    if (config.action?.n !== undefined && config.action.action !== "slip")
      report.error("LIMIT_SLIP", at("action"), `'${config.action.action}' takes no number`, {
        expected: "a number only after slip",
      });
    if (config.by?.ipv4 !== undefined && config.by.client !== "prefix")
      report.error("LIMIT_PREFIX", at("by"), `'by ${config.by.client}' takes no prefix lengths`, {
        expected: "prefix lengths only after 'by prefix'",
      });
  },
});

type Parsed<S> = S extends { parse(...args: never[]): readonly (infer T)[] | undefined } ? T : never;
export type LimitConfig = Parsed<typeof limitDirective>;

export function settingsOf(config: LimitConfig): LimitSettings {
  const by = config.by?.client ?? "address";
  const allowances: Partial<Record<LimitClass, Rate>> = {};
  for (const one of CLASSES) {
    const given = config[one];
    if (given === undefined) continue;
    const tokens = given.burst ?? given.rate;
    const interval = 1000 / given.rate;
    allowances[one] = { perSecond: given.rate, tokens, interval, burst: tokens * interval, debt: 0 };
  }
  return {
    allowances,
    largeSize: config.large_size,
    by,
    networks:
      by === "prefix"
        ? { ipv4: config.by?.ipv4 ?? PREFIX.ipv4, ipv6: config.by?.ipv6 ?? PREFIX.ipv6 }
        : { ipv4: 32, ipv6: 128 },
    action: config.action?.action ?? "slip",
    slip: config.action?.n ?? SLIP,
    exempt: config.exempt.flatMap(({ network: networks }) => networks),
    exemptNamespaces: config.exempt_namespace.flatMap(({ namespace }) => namespace),
    tableSize: config.table_size,
    dryRun: config.dry_run,
  };
}
