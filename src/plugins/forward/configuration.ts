/** The grammar of the directive. */
import { Name, Rcode } from "../../dns/index.ts";
import { formatGoDuration } from "../../lib/time/duration.ts";
import { type Argument, INVALID } from "../../plugin/config/arguments.ts";
import { tlsFiles } from "../../plugin/config/tls-files.ts";
import {
  type ConfigSchema,
  choice,
  directive,
  domainName,
  duration,
  flag,
  hostPort,
  integer,
  ipAddress,
  option,
  optionList,
  rcode,
  required,
  rest,
  single,
  text,
  type Value,
  ValueProblem,
} from "../../plugin/index.ts";
import { POLICY_NAMES } from "../../upstream/config/policy.ts";
import { fromZone, targets, zonesGiven } from "../../upstream/directive-words.ts";

const domain = domainName();

export interface ProbeForm {
  readonly recursionDesired: boolean;
  readonly domain: Name;
}

const probeForm: Argument<ProbeForm> = {
  read(cursor) {
    let recursionDesired = true;
    let name = Name.root;
    for (let token = cursor.take(); token !== undefined; token = cursor.take()) {
      if (token.text === "no_rec") {
        recursionDesired = false;
      } else if (token.text === "domain") {
        const value = cursor.take();
        const parsed =
          value === undefined ? cursor.missing("FQDN", domain.expected) : cursor.value(value, domain);
        if (parsed === INVALID) return INVALID;
        name = parsed;
      } else {
        cursor.context.report.error(
          "PLUGIN_BAD_VALUE",
          token.span,
          `health_check: unknown option '${token.text}'`,
          { expected: "no_rec, or domain with a name" },
        );
        return INVALID;
      }
    }
    return { recursionDesired, domain: name };
  },
  usage: () => "[no_rec] [domain FQDN]",
};

const failoverRcode: Value<number> = {
  expected: "an rcode such as SERVFAIL or REFUSED",
  parse(word, context) {
    const code = rcode().parse(word, context);
    return code === Rcode.NOERROR ? new ValueProblem("NoError cannot be used in failover") : code;
  },
};

/** Rejects negative durations; `name` is the option's, for the messages of CoreDNS. */
function span(name: string): Value<number> {
  return duration({ min: 0, problem: (word) => durationProblem(name, word, "can't be negative") });
}

function durationProblem(name: string, word: string, rule: string): string {
  return /^-/.test(word) || /^0[a-zµ]*$/.test(word)
    ? `${name} ${rule}: ${word}`
    : `${name}: '${word}' is not a duration such as 500ms or 30s`;
}

/** CoreDNS accepts no numbers here. */
const rcodeName: Value<number> = {
  expected: rcode().expected,
  parse: (word, context) =>
    /^\d/.test(word)
      ? new ValueProblem(`'${word}' is not the name of an rcode`)
      : rcode().parse(word, context),
};

/** Parses like Go's Atoi; `name` is the option's, for the messages of CoreDNS. */
function count(name: string): Value<number> {
  return integer({ min: 0, problem: (word) => countProblem(name, word) });
}

/** Parses like Go's ParseUint with 32 bits, which accepts no sign. */
function unsigned(name: string): Value<number> {
  const problem = (word: string): string => countProblem(name, word);
  const number = integer({ min: 0, max: 0xffff_ffff, problem });
  return {
    expected: number.expected,
    parse: (word, context) =>
      word.startsWith("+") ? new ValueProblem(problem(word)) : number.parse(word, context),
  };
}

function countProblem(name: string, word: string): string {
  return /^-\d+$/.test(word)
    ? `${name} can't be negative: ${word}`
    : `${name}: '${word}' is not a whole number`;
}

const args = { from: fromZone, to: targets({ plugin: "forward", schemes: ["dns", "tls", "https", "quic"] }) };

const options = {
  except: optionList({ ignored_names: zonesGiven }),
  force_tcp: flag(),
  prefer_udp: flag(),
  expire: single(span("expire"), 10_000),
  max_age: single(span("max_age"), 0),
  max_idle_conns: single(count("max_idle_conns"), 0),
  read_timeout: single(
    duration({ min: 1e-6, problem: (word) => durationProblem("read_timeout", word, "must be positive") }),
    2_000,
  ),
  max_fails: single(unsigned("max_fails"), 2),
  /** Default: twice the number of upstreams. */
  max_connect_attempts: single(unsigned("max_connect_attempts")),
  doh_method: single(
    choice(["GET", "POST"], { problem: () => "doh_method must be either POST or GET" }),
    "POST",
  ),
  tls: option({ files: tlsFiles }),
  tls_servername: single(text("the name in the certificate of the upstreams")),
  policy: single(choice(POLICY_NAMES, { problem: (word) => `unknown policy '${word}'` }), "random"),
  health_check: option({ duration: required(span("health_check")), form: probeForm }),
  max_concurrent: single(count("max_concurrent"), 0),
  next: optionList({ rcode: rest(rcodeName, 1) }),
  next_on_nodata: flag(),
  failfast_all_unhealthy_upstreams: flag(),
  failover: optionList({ rcode: rest(failoverRcode, 1) }),
  source_address: single(ipAddress((word) => `source_address: '${word}' is not an IP address`)),
  resolver: optionList({ address: rest(hostPort(53), 1) }),
  bootstrap: optionList({
    host: required(domain),
    address: rest(
      ipAddress((word) => `bootstrap: '${word}' is not an IP address`),
      1,
    ),
  }),
};

export const forwardDirective = directive({
  args,
  options,
  occurrences: "each",
  check({ max_age: maxAge, expire, to, tls_servername: serverName }, report, at) {
    if (maxAge !== 0 && maxAge < expire) {
      report.error(
        "PLUGIN_BAD_VALUE",
        at("max_age"),
        `max_age (${formatGoDuration(maxAge)}) must not be less than expire (${formatGoDuration(expire)})`,
      );
    }
    for (const word of to) {
      if (serverName === undefined || word.serverName === undefined) continue;
      const place = `${word.scheme}://${word.kind === "address" ? word.address.text : word.text}`;
      report.error(
        "PLUGIN_BAD_VALUE",
        at("tls_servername"),
        `both forward ('${serverName}') and proxy level ('${word.serverName}') TLS servernames are set for upstream proxy '${place}'`,
      );
    }
  },
});

export type ForwardConfig = typeof forwardDirective extends ConfigSchema<infer T> ? T : never;
