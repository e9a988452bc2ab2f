/** The doctor's findings, in words and figures. */
import { countOf } from "../../lib/text/count-of.ts";
import type { Capture } from "./capture.ts";
import type { Traffic } from "./traffic.ts";

export interface Finding {
  /** `search-path`, `aaaa`, ...: stable, for programs. */
  readonly code: FindingCode;
  /** One line, with a figure. */
  readonly title: string;
  /** The meaning, in a sentence or two. */
  readonly explanation: string;
  /** Share of the affected queries, 0 to 1; `undefined` if that is not a measure. */
  readonly share: number | undefined;
  readonly figures: Readonly<Record<string, number>>;
  readonly causes: readonly Cause[];
  readonly remedies: readonly Remedy[];
}

/** A client, a name or an upstream that causes the finding. */
export interface Cause {
  /** `shop/deployment/web`, a name, an upstream. */
  readonly who: string;
  readonly figure: string;
}

export interface Remedy {
  readonly text: string;
  /** A command to run or a fragment to paste, as is. */
  readonly patch?: string;
}

/** A rule that could not run, and the reason. */
export interface NotExamined {
  readonly code: FindingCode;
  readonly reason: string;
}

export const FINDING_CODES = [
  "not-ready",
  "cluster-data",
  "servfail",
  "refused-corefile",
  "zone-data",
  "limited-clients",
  "stale-answers",
  "stalls",
  "search-path",
  "aaaa",
  "absent-names",
  "retries",
  "slow-upstream",
  "failing-upstream",
  "lying-upstream",
  "udp-drops",
  "conntrack",
  "short-ttls",
  "memory",
  "probes",
] as const;
export type FindingCode = (typeof FINDING_CODES)[number];

/** One rule: findings, or the reason why it could not run. */
export type Rule = (
  capture: Capture,
  traffic: Traffic,
  commands: CommandFlags,
) => readonly (Finding | NotExamined)[];

/** Flags as shell words, so that a printed command addresses the same server. */
export interface CommandFlags {
  /** `-server` and the token, for all commands that query a server. */
  readonly server: string;
  /** All those of `doctor`; empty for the defaults. */
  readonly doctor: string;
}

/** For a capture, which does not name its server. */
export const USUAL_FLAGS: CommandFlags = { server: "-server 127.0.0.1:8184", doctor: "" };

/** For a rule on facts that the capture does not have. */
export function notReported(code: FindingCode, { last }: Capture): NotExamined {
  return {
    code,
    reason:
      last === undefined
        ? "the capture has no facts about the server"
        : "the server is an older version, which does not report it",
  };
}

export function isFinding(each: Finding | NotExamined): each is Finding {
  return "title" in each;
}

export function percent(share: number): string {
  const percentage = share * 100;
  return `${percentage > 0 && percentage < 10 ? percentage.toFixed(1) : percentage.toFixed(0)} %`;
}

/** A number of queries with their noun. */
export function queryCount(count: number): string {
  return countOf(Math.round(count), "query", "queries");
}

/** The same for any noun. */
export function ofAll(count: number, total: number, noun: string, nouns?: string): string {
  return `${Math.round(count)} of ${countOf(Math.round(total), noun, nouns)} (${percent(total === 0 ? 0 : count / total)})`;
}

/** `8 of 10 queries (80 %)`. */
export function ofQueries(count: number, total: number): string {
  return ofAll(count, total, "query", "queries");
}

export function mebibytes(octets: number): string {
  return `${Math.round(octets / 2 ** 20)} MiB`;
}
