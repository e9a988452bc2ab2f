/** Portolan's targets with a live cluster. */
import type { ChangeLoad, ClusterSample, QueriesAmidChanges } from "../cluster/cluster-results.ts";
import { type Spread, spreadOf } from "../numbers/statistics.ts";
import type { Results } from "../results.ts";

export interface ClusterTarget {
  readonly about: string;
  readonly limit: number;
  readonly isLowest: false;
  readonly unit: string;
  reached(results: Results): Spread | undefined;
}

export const CLUSTER_TARGETS: readonly ClusterTarget[] = [
  ofEach("from start to ready, lists streamed", 5000, "ms", "streamed", ({ ready }) => ready),
  ofEach("from start to ready, lists in pages", 5000, "ms", "paged", ({ ready }) => ready),
  ofEach("resident memory at rest", 120, "MB", "streamed", ({ restMegabytes }) => restMegabytes),
  ofEach(
    "peak while all is listed again, to rest",
    1.3,
    "×",
    "streamed",
    ({ relist, restMegabytes }) => relist.peakMegabytes / restMegabytes,
  ),
  ofEach("peak in a reload, to rest", 1.3, "×", "streamed", ({ reload }) =>
    reload === undefined ? undefined : reload.peakMegabytes / reload.beforeMegabytes,
  ),
  ofEach("longest wait for an answer in a reload", 20, "ms", "streamed", ({ reload }) => reload?.longestWait),
  ofEach("event to answer, p99, with cache", 10, "ms", "streamed", p99Milliseconds),
  ofEach("event to answer, p99, without cache", 10, "ms", "paged", p99Milliseconds),
  {
    about: "Live cluster: memory for as many pods",
    limit: 80,
    isLowest: false,
    unit: "MB",
    reached: (results) => {
      const pods = sampleOf(results, "pods");
      const none = sampleOf(results, "streamed");
      if (pods === undefined || none === undefined) return undefined;
      return spreadOf([pods.restMegabytes - none.restMegabytes]);
    },
  },
  {
    about: "Live cluster: CPU a change, without what the process takes idle",
    // CoreDNS's value beside a real API server, on another machine.
    limit: 210,
    isLowest: false,
    unit: "µs",
    reached: ({ cluster }) => {
      const load: ChangeLoad | undefined = cluster?.changes?.[0]?.loads[0];
      return load && spreadOf([load.microseconds]);
    },
  },
  {
    about: "Live cluster: CPU a query amid changes, without theirs, to that in peace",
    limit: 1.15,
    isLowest: false,
    unit: "×",
    reached: ({ cluster }) =>
      cluster?.queriesAmidChanges && spreadOf(queryRatios(cluster.queriesAmidChanges).withoutChanges),
  },
];

/** CPU a query of each turn amid changes to that of the turn in peace before it. */
export function queryRatios({ changeRate, changeMicroseconds, peace, amid }: QueriesAmidChanges): {
  readonly all: number[];
  /** Without the cost of the changes in an idle server. */
  readonly withoutChanges: number[];
} {
  const pairs = amid.flatMap((turn, at) => {
    const before = peace[at];
    return before === undefined ? [] : [{ turn, before }];
  });
  return {
    all: pairs.map(({ turn, before }) => turn.cpuMicroseconds / before.cpuMicroseconds),
    withoutChanges: pairs.map(({ turn, before }) => {
      const ofChanges = (changeRate * turn.seconds * changeMicroseconds) / turn.answered;
      return (turn.cpuMicroseconds - ofChanges) / before.cpuMicroseconds;
    }),
  };
}

function ofEach(
  about: string,
  limit: number,
  unit: string,
  scenario: string,
  figure: (sample: ClusterSample) => number | undefined,
): ClusterTarget {
  return {
    about: `Live cluster: ${about}`,
    limit,
    isLowest: false,
    unit,
    reached: (results) => {
      const sample = sampleOf(results, scenario);
      return sample && spreadOf([figure(sample)].filter((value) => value !== undefined));
    },
  };
}

function sampleOf({ cluster }: Results, name: string): ClusterSample | undefined {
  return cluster?.samples.find(({ scenario }) => scenario === name);
}

function p99Milliseconds({ latency }: ClusterSample): number | undefined {
  const p99 = latency?.latency?.p99;
  return p99 === undefined ? undefined : p99 / 1000;
}
