import { type IpPrefix, parseIpPrefix } from "../../lib/net/prefix-set.ts";
import { nearestWord } from "../../lib/text/nearest-word.ts";
import { parseGoDuration } from "../../lib/time/duration.ts";
import {
  directive,
  flag,
  optional,
  optionList,
  required,
  rest,
  type Value,
  ValueProblem,
} from "../../plugin/index.ts";

/** What to do with the header of a sender. */
export const POLICIES = ["use", "ignore", "reject", "skip"] as const;
export type ProxyPolicy = (typeof POLICIES)[number];

export interface ProxyConfig {
  /** Senders whose headers are used; the policy applies to all others. */
  readonly allowed: readonly IpPrefix[];
  readonly policy: ProxyPolicy;
  /** Milliseconds for which the header of a datagram applies to later ones, 0 to disable. */
  readonly sessionLifetime: number;
  readonly maxSessions: number;
  /** Whether the TLVs of proxies become metadata of queries. */
  readonly tlvMetadata: boolean;
}

const DEFAULT_SESSIONS = 10_240;

const network: Value<IpPrefix> = {
  expected: "a network such as 10.0.0.0/8",
  parse(word) {
    const prefix = word.includes("/") ? parseIpPrefix(word) : undefined;
    return prefix ?? new ValueProblem(`${word}: invalid CIDR address: ${word}`);
  },
};

const policy: Value<ProxyPolicy> = {
  expected: `one of ${POLICIES.join(", ")}`,
  parse(word) {
    const found = POLICIES.find((known) => known === word.toLowerCase());
    return (
      found ??
      new ValueProblem(
        `Wrong argument count or unexpected line ending after '${word}'`,
        nearestWord(word.toLowerCase(), POLICIES),
      )
    );
  },
};

const lifetime: Value<number> = {
  expected: "a duration such as 5s; 0 or less disables tracking",
  parse(word) {
    const milliseconds = parseGoDuration(word);
    if (milliseconds !== undefined) return milliseconds;
    const reason = /^\d+$/.test(word) ? "missing unit in duration" : "invalid duration";
    return new ValueProblem(`udp_session_tracking: invalid duration "${word}": time: ${reason} "${word}"`);
  },
};

const sessions: Value<number> = {
  expected: "a whole number above 0",
  parse(word) {
    if (/^\d{1,9}$/.test(word) && Number(word) > 0) return Number(word);
    return new ValueProblem(
      `udp_session_tracking: invalid max sessions "${word}": must be a positive integer`,
    );
  },
};

const declared = directive({
  options: {
    allow: optionList({ networks: rest(network) }),
    default: optionList({ policy: required(policy) }),
    udp_session_tracking: optionList({
      duration: required(lifetime),
      max_sessions: optional(sessions, DEFAULT_SESSIONS),
    }),
    tlv_metadata: flag(),
  },
  otherwise(line, { report }) {
    const { text, span } = line.name;
    const known = ["allow", "default", "udp_session_tracking", "tlv_metadata"];
    report.error("PLUGIN_UNKNOWN_PROPERTY", span, `unknown option '${text}'`, {
      expected: `one of ${known.join(", ")}`,
      suggestion: nearestWord(text, known),
    });
    return true;
  },
  occurrences: "last",
});

export const proxyConfig = {
  description: declared.description,
  parse(...[occurrences, context]: Parameters<typeof declared.parse>): readonly ProxyConfig[] | undefined {
    const before = context.report.diagnostics.filter(({ severity }) => severity === "error").length;
    const configs = declared.parse(occurrences, context);
    const errors = context.report.diagnostics.filter(({ severity }) => severity === "error").length;
    if (configs === undefined || errors > before) return undefined;
    return configs.map(({ allow, default: defaults, udp_session_tracking: tracking, tlv_metadata }) => {
      const networks = allow.flatMap((line) => line.networks);
      const given = defaults.at(-1)?.policy;
      return {
        allowed: networks,
        // Without networks the policy applies to all senders, with networks to all others.
        policy: given ?? (networks.length > 0 ? "ignore" : "use"),
        sessionLifetime: Math.max(0, tracking.at(-1)?.duration ?? 0),
        maxSessions: tracking.at(-1)?.max_sessions ?? DEFAULT_SESSIONS,
        tlvMetadata: tlv_metadata,
      };
    });
  },
};
