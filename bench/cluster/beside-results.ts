/** The results of the benchmark of changes beside other servers. */
import type { Machine } from "../machine-facts.ts";
import type { LatencySample } from "./cluster-results.ts";
import type { ClusterSize } from "./cluster-shape.ts";

export interface BesideResults {
  readonly startedAt: string;
  readonly machine: Machine;
  readonly size: ClusterSize;
  /** In the order of the rounds. */
  readonly samples: readonly BesideSample[];
  readonly doubts: readonly string[];
}

/** One server in one round. */
export interface BesideSample {
  readonly round: number;
  readonly server: string;
  /** CPU time in seconds, from the start of the process until some seconds after it is ready. */
  readonly loadSeconds: number;
  /** Share of a core in an idle server. */
  readonly idleShare: number;
  readonly loads: readonly BesideLoad[];
  /** From a change to the first answer that shows it, without a cache. */
  readonly sliceChanged: LatencySample;
  readonly serviceNew: LatencySample;
  /** The most that was resident, in megabytes of 10^6 octets. */
  readonly peakMegabytes: number;
  /** At the end. */
  readonly residentMegabytes: number;
}

export interface BesideLoad {
  /** Changes a second. */
  readonly rate: number;
  readonly changes: number;
  /** CPU time a change, without what the process takes with nothing to do. */
  readonly microseconds: number;
  /** With that. */
  readonly allMicroseconds: number;
}
