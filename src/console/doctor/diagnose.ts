/** Runs all rules on one capture. */
import { aaaaNoise } from "./aaaa.ts";
import { absentNames } from "./absent-names.ts";
import type { Capture } from "./capture.ts";
import { clusterData, limitedClients, notReady, refusedCorefile, zoneData } from "./duty.ts";
import {
  type CommandFlags,
  FINDING_CODES,
  type Finding,
  type FindingCode,
  isFinding,
  type NotExamined,
  queryCount,
  type Rule,
  USUAL_FLAGS,
} from "./finding.ts";
import { conntrack, udpDrops } from "./kernel.ts";
import { memory } from "./memory.ts";
import { probes } from "./probes.ts";
import { retries } from "./retries.ts";
import { searchPath } from "./search-path.ts";
import { servfail } from "./servfail.ts";
import { shortTtls } from "./short-ttls.ts";
import { staleAnswers } from "./stale-answers.ts";
import { stalls } from "./stalls.ts";
import { LEAST_QUERIES, Traffic } from "./traffic.ts";
import { failingUpstreams, lyingUpstreams, slowUpstreams } from "./upstreams.ts";

export interface Diagnosis {
  /** The most expensive first. */
  readonly findings: readonly Finding[];
  readonly notExamined: readonly NotExamined[];
  readonly observed: {
    /** Queries, including those represented by sampled ones. */
    readonly queries: number;
    readonly rows: number;
    /** Seconds from the first query to the last. */
    readonly seconds: number;
    readonly server: string;
  };
}

const RULES: Readonly<Record<FindingCode, Rule>> = {
  "not-ready": notReady,
  "cluster-data": clusterData,
  servfail,
  "refused-corefile": refusedCorefile,
  "zone-data": zoneData,
  "limited-clients": limitedClients,
  "stale-answers": staleAnswers,
  stalls,
  "search-path": searchPath,
  aaaa: aaaaNoise,
  "absent-names": absentNames,
  retries,
  "slow-upstream": slowUpstreams,
  "failing-upstream": failingUpstreams,
  "lying-upstream": lyingUpstreams,
  "udp-drops": udpDrops,
  conntrack,
  "short-ttls": shortTtls,
  memory,
  probes,
};

/** Rules that count queries. */
const OF_TRAFFIC: ReadonlySet<FindingCode> = new Set([
  "search-path",
  "aaaa",
  "absent-names",
  "retries",
  "short-ttls",
]);

/** Findings that something is broken come before findings that something is wasted. The gravest first. */
const URGENT: readonly FindingCode[] = [
  "not-ready",
  "cluster-data",
  "servfail",
  "failing-upstream",
  "refused-corefile",
  "zone-data",
  "stale-answers",
  "stalls",
  "lying-upstream",
  "conntrack",
  "udp-drops",
  "limited-clients",
  "slow-upstream",
  "memory",
  "probes",
];

export function diagnose(capture: Capture, commands: CommandFlags = USUAL_FLAGS): Diagnosis {
  const traffic = new Traffic(capture);
  const results = FINDING_CODES.flatMap((code) => {
    if (OF_TRAFFIC.has(code) && traffic.total < LEAST_QUERIES)
      return [
        {
          code,
          reason: `${queryCount(traffic.total)} ${traffic.total === 1 ? "is" : "are"} too few: capture for longer (-for), or at a busier time`,
        },
      ];
    return RULES[code](capture, traffic, commands);
  });
  const { rows, earliest, latest } = capture.traffic;
  const now = capture.last?.now;
  return {
    findings: results.filter(isFinding).sort((one, other) => rank(other) - rank(one)),
    notExamined: results.filter((each): each is NotExamined => !isFinding(each)),
    observed: {
      queries: Math.round(traffic.total),
      rows,
      seconds: rows < 2 ? 0 : Math.round((latest - earliest) / 100) / 10,
      server: now === undefined ? "" : `${now.hostname}, Portolan-${now.version}`,
    },
  };
}

function rank({ code, share }: Finding): number {
  const urgency = URGENT.indexOf(code);
  return urgency < 0 ? (share ?? 0) : 1 + URGENT.length - urgency;
}
