/** Upstreams that are slow, fail, or give wrong answers. */

import { countOf } from "../../lib/text/count-of.ts";
import type { UpstreamRow } from "../api-types.ts";
import type { Capture, CapturedServer } from "./capture.ts";
import { upstreamFaults } from "./duty.ts";
import { type Finding, type NotExamined, ofAll, queryCount, type Rule } from "./finding.ts";
import { ASKING_PLUGINS } from "./query-groups.ts";
import { Tally, type Traffic } from "./traffic.ts";

/** Average in milliseconds that users notice. */
const SLOW = 100;
/** The factor that is slow compared with other upstreams. */
const SLOWER = 5;
const LEAST_SLOWER = 20;
const LEAST_EXCHANGES = 10;
/** Exchanges that one pause of the server may delay together: A and AAAA of two clients. */
const HELD_UP = 4;
const FAILING = 0.05;
const LEAST_ERRORS = 3;
const DISCARDED = 5;

interface Measured {
  readonly row: UpstreamRow;
  readonly exchanges: number;
  readonly errors: number;
  readonly failedChecks: number;
  readonly discarded: number;
  /** Milliseconds. */
  readonly mean: number | undefined;
}

/** The exchanges during the capture, or since the start if these are too few. */
function measured({ first, last }: Capture): Measured[] {
  return (last?.now.upstreams ?? []).map((row) => {
    const before = rowBefore(first, row);
    const exchanges = row.exchanges - (before?.exchanges ?? 0);
    if (before === undefined || exchanges < LEAST_EXCHANGES) {
      const failedChecks = row.failedChecks - (before?.failedChecks ?? 0);
      return { ...row, row, failedChecks: Math.max(failedChecks, 0), mean: row.mean ?? undefined };
    }
    const time = (row.mean ?? 0) * row.exchanges - (before.mean ?? 0) * before.exchanges;
    return {
      row,
      exchanges,
      errors: row.errors - before.errors,
      failedChecks: row.failedChecks - before.failedChecks,
      discarded: row.discarded - before.discarded,
      mean: time / exchanges,
    };
  });
}

function rowBefore(facts: CapturedServer | undefined, row: UpstreamRow): UpstreamRow | undefined {
  return facts?.now.upstreams.find(({ plugin, address }) => plugin === row.plugin && address === row.address);
}

export const slowUpstreams: Rule = (capture, traffic) => {
  if (capture.last === undefined) return slowAnswers(traffic);
  const all = measured(capture);
  const seemSlow = all.filter(({ row, mean = 0, exchanges }) => {
    if (exchanges < LEAST_EXCHANGES) return false;
    const best = Math.min(
      ...all.filter((each) => each.row.plugin === row.plugin).map((each) => each.mean ?? mean),
    );
    return mean >= SLOW || (mean >= LEAST_SLOWER && mean >= SLOWER * best);
  });
  const late = lateness(capture);
  const slow = seemSlow.filter((each) => !isOwn(late, each));
  if (slow.length === 0) return seemSlow.length === 0 ? [] : [tooLate(late)];
  const exchanges = slow.reduce((sum, each) => sum + each.exchanges, 0);
  return [
    {
      code: "slow-upstream",
      title: `${slow.length === 1 ? "an upstream takes" : `${slow.length} upstreams take`} ${slow
        .map(({ mean = 0 }) => `${Math.round(mean)} ms`)
        .join(", ")} for an answer on average`,
      explanation: "Every cache miss waits for it; a C library gives up after 5 seconds.",
      share: undefined,
      figures: { exchanges, mean: Math.max(...slow.map(({ mean = 0 }) => mean)) },
      causes: slow.map(({ row, mean = 0, exchanges }) => ({
        who: `${row.plugin} to ${row.address}`,
        figure: `${Math.round(mean)} ms over ${countOf(exchanges, "exchange")}; 99 % within ${row.p99 ?? "-"} ms since the start`,
      })),
      remedies: [
        {
          text: `take ${addresses(slow)} out of 'forward', or put a nearer one in front of it with 'policy sequential'`,
        },
        {
          text: "and refresh frequent names before they expire: add to 'cache' in the Corefile",
          patch: "prefetch 3 1m 20%",
        },
      ],
    },
  ];
};

type Pauses = CapturedServer["now"]["pauses"];

/** The server's own delay in reading replies, which the time of an exchange includes. */
function lateness({ first, last }: Capture): Pauses {
  const pauses = [first, last].flatMap((facts) => facts?.now.pauses ?? []);
  return {
    p99: Math.max(0, ...pauses.map(({ p99 }) => p99)),
    longest: Math.max(0, ...pauses.map(({ longest }) => longest)),
  };
}

/** Whether the server's own pauses may explain the durations: many pauses, or a long one amid few exchanges. */
function isOwn({ p99, longest }: Pauses, { mean = 0, exchanges }: Measured): boolean {
  return mean < p99 || mean * exchanges < HELD_UP * longest;
}

function tooLate({ p99, longest }: Pauses): NotExamined {
  return {
    code: "slow-upstream",
    reason:
      `the server itself is late, one time in a hundred by ${Math.round(p99)} ms and once by ${Math.round(longest)} ms, ` +
      "so the speed of its upstreams cannot be measured: give it more CPU, or capture when its machine is less busy",
  };
}

/** Without facts: the durations of answers from forwarding plugins. */
function slowAnswers(traffic: Traffic): (Finding | NotExamined)[] {
  const asked = [...traffic.groups].filter(({ plugin }) => ASKING_PLUGINS.has(plugin));
  const exchanges = Math.round(asked.reduce((sum, { rows }) => sum + rows, 0));
  if (exchanges < LEAST_EXCHANGES)
    return [
      {
        code: "slow-upstream",
        reason: "the capture has no facts about the server, and too few answers of upstreams",
      },
    ];
  const mean = asked.reduce((sum, { duration }) => sum + duration, 0) / exchanges;
  if (mean < SLOW) return [];
  const names = new Tally();
  for (const { name, duration } of asked) names.add(name, duration);
  return [
    {
      code: "slow-upstream",
      title: `answers of upstreams take ${Math.round(mean)} ms on average`,
      explanation: "The capture does not name the upstreams: a capture by 'portolan doctor -record' does.",
      share: traffic.share(exchanges),
      figures: { exchanges, mean },
      causes: names.top(5).map(([who, time]) => ({ who, figure: `${Math.round(time)} ms waited in all` })),
      remedies: [{ text: "ask the running server: portolan doctor" }],
    },
  ];
}

export const failingUpstreams: Rule = (capture, traffic) => {
  if (capture.last === undefined)
    return [{ code: "failing-upstream", reason: "the capture has no facts about the server" }];
  const reasons = upstreamFaults(capture);
  const failing = measured(capture).filter(
    ({ row, exchanges, errors, failedChecks }) =>
      failedChecks > 0 ||
      // It fails now, even if no check ended while this ran.
      reasons.has(row.address) ||
      (exchanges >= LEAST_EXCHANGES && errors >= LEAST_ERRORS && errors >= FAILING * exchanges),
  );
  if (failing.length === 0) return [];
  const callers = new Tally();
  for (const { rcode, plugin, who, weight } of traffic.groups) {
    if (rcode !== "SERVFAIL" || !ASKING_PLUGINS.has(plugin)) continue;
    callers.add(who, weight);
  }
  const reasonOf = ({ row }: Measured): string => {
    const reason = reasons.get(row.address) ?? reasonAskedAgain(row, capture);
    return reason === undefined ? "" : `: ${reason}`;
  };
  const hit = callers.top(3).map(([who, count]) => ({ who, figure: `${queryCount(count)} failed` }));
  return [
    {
      code: "failing-upstream",
      title: `${failing.length === 1 ? "an upstream fails" : `${failing.length} upstreams fail`}: ${addresses(failing)}`,
      explanation: failing.some(({ row, failedChecks }) => failedChecks > 0 || reasons.has(row.address))
        ? "It refuses or ignores queries: since a query failed, this server has checked its health, in vain."
        : "It answers, but with SERVFAIL, REFUSED and the like.",
      share: undefined,
      figures: {
        exchanges: failing.reduce((sum, { exchanges }) => sum + exchanges, 0),
        errors: failing.reduce((sum, { errors }) => sum + errors, 0),
        failedChecks: failing.reduce((sum, { failedChecks }) => sum + failedChecks, 0),
      },
      causes: [
        ...failing.map((each) => ({
          who: `${each.row.plugin} to ${each.row.address}`,
          figure: `${failureWords(each)}${reasonOf(each)}`,
        })),
        ...hit,
      ],
      remedies: [
        {
          text: `repair ${addresses(failing)}, or take it out of 'forward' if others remain`,
        },
        {
          text: "until then, ask the next upstream after such an answer: add to 'forward' in the Corefile",
          patch: "failover SERVFAIL REFUSED",
        },
        {
          text: "and answer from expired entries: add to 'cache' in the Corefile",
          patch: "serve_stale 1h",
        },
      ],
    },
  ];
};

export const lyingUpstreams: Rule = (capture, traffic) => {
  const findings: Finding[] = [];
  const strange = measured(capture).filter(({ discarded }) => discarded >= DISCARDED);
  if (strange.length > 0) findings.push(discardedFinding(strange));
  const wild = new Tally();
  const callers = new Tally();
  for (const { name, rcode, hasAnswer, who, weight } of traffic.groups) {
    // A full name of the cluster in front: such a name does not exist, and only a wildcard answers it.
    if (!hasAnswer || rcode !== "NOERROR" || !holdsClusterName(name, traffic)) continue;
    wild.add(name, weight);
    callers.add(who, weight);
  }
  const { impossible } = capture;
  const isProved = impossible !== undefined && impossible.rcode === "NOERROR" && impossible.answer.length > 0;
  const count = wild.top(Number.POSITIVE_INFINITY).reduce((sum, [, each]) => sum + each, 0);
  if (count > 0 || isProved) {
    findings.push({
      code: "lying-upstream",
      title: isProved
        ? `an upstream has an address for ${impossible.name}, which cannot exist`
        : `an upstream has addresses for ${countOf(wild.size, "name")} that cannot exist`,
      explanation:
        "A resolver that sells advertisements, a captive portal or a wildcard in a search domain of the nodes answers for names that do not exist: " +
        "clients stop searching at such an answer and connect to the wrong host.",
      share: traffic.share(count),
      figures: { answered: count, names: wild.size, proved: isProved ? 1 : 0 },
      causes: [
        ...(isProved
          ? [
              {
                who: `${impossible.plugin}${impossible.upstream === undefined ? "" : ` to ${impossible.upstream}`}`,
                figure: impossible.answer.slice(0, 3).join("; "),
              },
            ]
          : []),
        ...wild.top(3).map(([who, queries]) => ({ who, figure: `${queryCount(queries)} answered` })),
        ...callers.top(3).map(([who, queries]) => ({ who, figure: queryCount(queries) })),
      ],
      remedies: [
        {
          text: "forward to a resolver that returns NXDOMAIN, or take the search domain out of the nodes' resolv.conf (kubelet: resolvConf); until then deny it here",
          patch: `template IN ANY ${wildZone(wild, traffic) ?? "invalid"} {\n    rcode NXDOMAIN\n}`,
        },
      ],
    });
  }
  return findings;
};

function discardedFinding(strange: readonly Measured[]): Finding {
  const count = strange.reduce((sum, { discarded }) => sum + discarded, 0);
  return {
    code: "lying-upstream",
    title: `${count} messages from upstreams match no pending query`,
    explanation:
      "Their id matched no pending query, or their question did not match: late replies, or spoofing attempts. They were dropped.",
    share: undefined,
    figures: { discarded: count },
    causes: strange.map(({ row, discarded, exchanges }) => ({
      who: `${row.plugin} to ${row.address}`,
      figure: `${countOf(discarded, "message")} beside ${countOf(exchanges, "exchange")}`,
    })),
    remedies: [
      {
        text: `ask ${addresses(strange)} over TLS where it offers that, else over TCP: then no host in between can answer in its place`,
        patch: "forward . tls://ADDRESS {\n    tls_servername NAME\n}",
      },
    ],
  };
}

function holdsClusterName(name: string, { domains }: Traffic): boolean {
  return domains.some((domain) => {
    const at = name.indexOf(`.svc.${domain}`);
    return at > 0 && !name.endsWith(`.${domain}`);
  });
}

/** The zone that follows the cluster's domain. */
function wildZone(wild: Tally, { domains }: Traffic): string | undefined {
  const [most] = wild.top(1);
  for (const domain of domains) {
    const at = most?.[0].toLowerCase().indexOf(`.${domain}`) ?? -1;
    if (most === undefined || at <= 0) continue;
    const zone = most[0].slice(at + domain.length + 1);
    // Clients choose names, and users copy this into a Corefile.
    if (/^[\w.-]+$/.test(zone)) return zone;
  }
  return undefined;
}

function addresses(rows: readonly Measured[]): string {
  return rows.map(({ row }) => row.address).join(", ");
}

function failureWords({ row, exchanges, errors, failedChecks }: Measured): string {
  // Those since the start, if there was nothing else to see while this ran.
  const failed = failedChecks > 0 || errors > 0 ? failedChecks : row.failedChecks;
  const checks = failed === 0 ? "" : `${countOf(failed, "health check")} failed`;
  if (exchanges === 0) return `no answer to any query${checks === "" ? "" : `, and ${checks}`}`;
  if (errors === 0 && checks === "") return "fails now";
  const answers = `${ofAll(errors, exchanges, "answer")} had SERVFAIL, REFUSED or the like`;
  if (checks === "") return answers;
  return errors === 0 ? checks : `${answers}, and ${checks}`;
}

/** The reason of a failed query that was asked again. The upstream may have recovered in the eyes of health checks. */
function reasonAskedAgain({ plugin, address }: UpstreamRow, { failures }: Capture): string | undefined {
  return failures.find((each) => each.plugin === plugin && each.reason.includes(address))?.reason;
}
