/** The results of the benchmark of the live cluster. */
import type { Percentiles } from "../load/load-result.ts";
import type { Machine } from "../machine-facts.ts";
import type { ClusterSize } from "./cluster-shape.ts";

export interface ClusterResults {
  readonly startedAt: string;
  readonly machine: Machine;
  readonly size: ClusterSize;
  readonly samples: readonly ClusterSample[];
  /** Absent in results of before it was measured. */
  readonly changes?: readonly ChangeSample[];
  readonly queriesAmidChanges?: QueriesAmidChanges;
  /** The reasons to doubt these two. */
  readonly doubts?: readonly string[];
}

/** One scenario. Megabytes are of 10^6 octets. */
export interface ClusterSample {
  readonly scenario: string;
  readonly about: string;
  /** Milliseconds from the start of the process until `/ready` says so. */
  readonly ready: number;
  /** Milliseconds from the first request for a list until the last octet of the last list had left the API. */
  readonly sync: number;
  /** The data that the API sent in that time. */
  readonly listMegabytes: number;
  /** Some time later, without queries. */
  readonly restMegabytes: number;
  /** Of that, without pages of files. Absent in results from before it was measured. */
  readonly restOwnMegabytes?: number | undefined;
  readonly relist: RelistSample;
  /** Absent in results of before it was measured. */
  readonly reload?: ReloadSample;
  readonly latency: LatencySample | undefined;
  readonly churn: ChurnSample | undefined;
  /** The reasons to doubt the times of this sample, in words. */
  readonly doubts: readonly string[];
}

export interface RelistSample {
  /** Milliseconds from 410 to the end of the last list. */
  readonly took: number;
  /** The most that was resident between 410 and some seconds after the last list. */
  readonly peakMegabytes: number;
  /** The most without pages of files. Absent in results from before it was measured. */
  readonly ownPeakMegabytes?: number | undefined;
  /** Some time after the last list. */
  readonly afterMegabytes: number;
}

export interface ReloadSample {
  readonly beforeMegabytes: number;
  /** The most that was resident from the signal until some seconds after the reload. */
  readonly peakMegabytes: number;
  /** Without pages of files, before and at its peak. Absent in results from before it was measured. */
  readonly ownBeforeMegabytes?: number | undefined;
  readonly ownPeakMegabytes?: number | undefined;
  readonly afterMegabytes: number;
  /** The longest time in milliseconds that a client, querying without pause, waited for an answer. */
  readonly longestWait: number;
  readonly asked: number;
}

/** From an event that the API sends to the first answer that shows it. */
export interface LatencySample {
  /** Microseconds. */
  readonly latency: Percentiles | undefined;
  readonly events: number;
  /** Events that no answer ever showed: the next one was faster. */
  readonly missed: number;
}

export interface ChurnSample {
  /** Events a second. */
  readonly rate: number;
  readonly events: number;
  /** CPU time an event, all that the process does included. */
  readonly cpuMicroseconds: number;
  /** 1 is a whole core. */
  readonly cpuShare: number;
}

/** Services and small slices that are created, changed and deleted in a cluster of some size, without queries. */
export interface ChangeSample {
  readonly name: string;
  readonly services: number;
  readonly endpoints: number;
  /** Share of a core in an idle process. */
  readonly idleShare: number;
  readonly loads: readonly ChangeLoad[];
}

export interface ChangeLoad {
  /** Changes a second. */
  readonly rate: number;
  /** So many come in one frame. */
  readonly together: number;
  readonly changes: number;
  readonly seconds: number;
  /** CPU time a change, all that the process does included. */
  readonly allMicroseconds: number;
  /** Without what it takes with nothing to do. */
  readonly microseconds: number;
}

/** Cluster names without cache at a fixed rate: turns in peace, each followed by one amid changes. */
export interface QueriesAmidChanges {
  /** Queries per second. */
  readonly rate: number;
  /** Changes a second. */
  readonly changeRate: number;
  /** CPU time of a change in an idle server. */
  readonly changeMicroseconds: number;
  readonly peace: readonly QueryTurn[];
  readonly amid: readonly QueryTurn[];
}

export interface QueryTurn {
  readonly answered: number;
  readonly lost: number;
  readonly seconds: number;
  /** CPU time an answer, all that the process does included. */
  readonly cpuMicroseconds: number;
}
