/** The results of a benchmark run. */
import type { BesideResults } from "./cluster/beside-results.ts";
import type { ClusterResults } from "./cluster/cluster-results.ts";
import type { ConsoleResults } from "./console/console-results.ts";
import type { Percentiles } from "./load/load-result.ts";
import type { Machine } from "./machine-facts.ts";
import type { LimitedResults, MemoryResults } from "./memory/memory-results.ts";
import type { SoakResults } from "./soak/soak-results.ts";
import type { ZoneResults } from "./zones/zone-results.ts";

/** One server under one workload in one round. */
export interface Sample {
  readonly round: number;
  readonly workload: string;
  readonly server: string;
  /** Answers a second while it was asked as fast as it answered. */
  readonly queriesPerSecond: number;
  /** CPU time of the server an answer, microseconds. */
  readonly cpuMicroseconds: number;
  /** CPU time of the server by time passed: 1 is a whole core. */
  readonly cpuShare: number;
  readonly sent: number;
  readonly lost: number;
  /** After the load, megabytes. */
  readonly residentMegabytes: number;
  readonly openLoop: OpenLoopSample;
  /** The reasons to doubt this sample, in words. */
  readonly doubts: readonly string[];
}

/** Portolan and what it is compared with, side by side in one round: the load goes to them in turns. */
export interface PairSample {
  readonly round: number;
  readonly workload: string;
  /** The workload of the other one. */
  readonly beside: string;
  /** The other one; Portolan unless given. */
  readonly server?: string;
  /** CPU time an answer, to that of the other one, of each two turns in a row. */
  readonly ratios: readonly number[];
}

/** The same server asked at half of what it had answered just before. */
export interface OpenLoopSample {
  /** Queries per second. */
  readonly rate: number;
  readonly latency: Percentiles | undefined;
  /** How late the generator was. */
  readonly sendDelay: Percentiles | undefined;
  readonly cpuMicroseconds: number;
  readonly sent: number;
  readonly lost: number;
}

/** Portolan with the quickstart's Corefile, not asked for anything. */
export interface AtRestSample {
  readonly round: number;
  /** Milliseconds from the start of the process to its first answer. */
  readonly firstAnswer: number;
  readonly residentMegabytes: number;
}

export interface Results {
  readonly startedAt: string;
  readonly machine: Machine;
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly rounds: number;
  /** Name and version, in the order of the tables. */
  readonly servers: readonly { readonly name: string; readonly about: string; readonly version: string }[];
  readonly missingServers: readonly { readonly name: string; readonly reason: string }[];
  readonly workloads: readonly { readonly name: string; readonly title: string; readonly about: string }[];
  readonly samples: readonly Sample[];
  /** Absent in results from before there were any. */
  readonly pairs?: readonly PairSample[];
  readonly atRest: readonly AtRestSample[];
  readonly failures: readonly Failure[];
  /** Measured by itself, perhaps another day: `--cluster`. */
  readonly cluster?: ClusterResults | undefined;
  /** The same: `--cluster` with `--server`. */
  readonly beside?: BesideResults | undefined;
  /** The same: `--memory`. */
  readonly memory?: MemoryResults | undefined;
  /** The same: `--limit`. */
  readonly limited?: LimitedResults | undefined;
  /** The same: `--soak`. */
  readonly soak?: SoakResults | undefined;
  /** The same: `--zones`. */
  readonly zones?: ZoneResults | undefined;
  /** The same: `--console`. */
  readonly console?: ConsoleResults | undefined;
  /** How each server was started for each workload, from the first round. */
  readonly configurations: readonly Configuration[];
}

/** A measurement that came to nothing: the server did not start, or ended. */
export interface Failure {
  readonly round: number;
  readonly workload: string;
  readonly server: string;
  readonly reason: string;
}

export interface Configuration {
  readonly workload: string;
  readonly server: string;
  readonly commandLine: string;
  readonly files: Readonly<Record<string, string>>;
}

/** Where nothing was measured yet. */
export function noResults(machine: Machine, startedAt: string): Results {
  return {
    startedAt,
    machine,
    seconds: 0,
    warmUpSeconds: 0,
    rounds: 0,
    servers: [],
    missingServers: [],
    workloads: [],
    samples: [],
    atRest: [],
    failures: [],
    configurations: [],
  };
}
