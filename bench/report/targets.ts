/** Portolan's targets, as ratios within one run. */
import { type Spread, spreadOf } from "../numbers/statistics.ts";
import type { Results } from "../results.ts";
import { CLUSTER_TARGETS } from "./cluster-targets.ts";
import {
  cpuMicroseconds,
  type Figure,
  p99Microseconds,
  pairRatio,
  queriesPerSecond,
  ratioOf,
} from "./summary.ts";
import { zoneFigure, zoneRatio } from "./zones.ts";

export interface TargetResult {
  readonly about: string;
  /** Such as "≤ 1.35 ×". */
  readonly must: string;
  readonly unit: string;
  /** Undefined where this run has no measurement for it. */
  readonly reached: Spread | undefined;
  /** By the median of the rounds. */
  readonly met: boolean | undefined;
}

interface Target {
  readonly about: string;
  readonly limit: number;
  readonly isLowest: boolean;
  readonly unit: string;
  reached(results: Results): Spread | undefined;
}

const ZONE_TARGETS: readonly Target[] = [
  {
    about: "Large zone: CPU a query, to nsd",
    limit: 1.2,
    isLowest: false,
    unit: "×",
    reached: ({ zones }) => zoneRatio(zones, "portolan", "nsd"),
  },
  {
    about: "Large zone: CPU a query, to the same answers cached",
    limit: 1.15,
    isLowest: false,
    unit: "×",
    reached: ({ zones }) => zoneRatio(zones, "portolan", "portolan with cache"),
  },
  {
    about: "Large zone: from start to first answer",
    limit: 4,
    isLowest: false,
    unit: "s",
    reached: ({ zones }) => zoneFigure(zones, "portolan", ({ loadSeconds }) => loadSeconds),
  },
];

const TARGETS: readonly Target[] = [
  sideBySide("cached-1k", "floor", 1.15),
  ...["cached-1k", "cached-100k", "search-path"].map((workload) => sideBySide(workload, "unbound", 0.95)),
  ...["cached-1k", "cached-100k"].map((workload) => compared(workload, "dnsmasq", 1)),
  compared("cache-80", "unbound", 0.9),
  withOwnHits("Cluster names without cache", "cluster", 1.15),
  besideOwnHits("Forwarding without cache", "forward", 1.8),
  besideOwnHits("With the console on", "cached-1k-console", 1.02),
  {
    about: "Plain dgram: CPU a query, to the batched cached-1k",
    limit: 2,
    isLowest: false,
    unit: "×",
    reached: (results) =>
      ratioOf(
        results,
        cpuMicroseconds,
        { workload: "cached-1k", server: "portolan-dgram" },
        { workload: "cached-1k", server: "portolan" },
      ),
  },
  {
    ...versus("Queries/s", queriesPerSecond, "tcp-pipelined", "unbound", 1),
    isLowest: true,
  },
  {
    ...versus("Queries/s", queriesPerSecond, "dot-pipelined", "unbound", 1),
    isLowest: true,
  },
  compared("dot-pipelined", "unbound", 1),
  versus("p99 at half of capacity", p99Microseconds, "cached-1k", "unbound", 1.5),
  {
    about: "Resident memory at rest, quickstart",
    limit: 80,
    isLowest: false,
    unit: "MB",
    reached: ({ atRest }) => spreadOf(atRest.map(({ residentMegabytes }) => residentMegabytes)),
  },
  {
    about: "From start to first answer, quickstart",
    limit: 300,
    isLowest: false,
    unit: "ms",
    reached: ({ atRest }) => spreadOf(atRest.map(({ firstAnswer }) => firstAnswer)),
  },
  ...CLUSTER_TARGETS,
  ...ZONE_TARGETS,
  {
    about: "The console's page, from a tab with another page, to the end of the event load",
    limit: 100,
    isLowest: false,
    unit: "ms",
    reached: ({ console: ofConsole }) =>
      spreadOf(ofConsole?.page?.fromOtherSite?.page.map(({ loaded }) => loaded) ?? []),
  },
];

export function judge(results: Results): TargetResult[] {
  return TARGETS.map((target) => {
    const { about, limit, isLowest, unit } = target;
    const spread = target.reached(results);
    return {
      about,
      must: `${isLowest ? "≥" : "≤"} ${limit} ${unit}`,
      unit,
      reached: spread,
      met: spread && (isLowest ? spread.median >= limit : spread.median <= limit),
    };
  });
}

function compared(workload: string, server: string, limit: number): Target {
  return versus("CPU a query", cpuMicroseconds, workload, server, limit);
}

function sideBySide(workload: string, server: string, limit: number): Target {
  return {
    about: `CPU a query, ${workload}, beside ${server}`,
    limit,
    isLowest: false,
    unit: "×",
    reached: (results) => pairRatio(results, workload, { workload, server }),
  };
}

function besideOwnHits(about: string, workload: string, limit: number): Target {
  return {
    about: `${about}: CPU a query, beside our own cached-1k`,
    limit,
    isLowest: false,
    unit: "×",
    reached: (results) => pairRatio(results, workload, { workload: "cached-1k", server: "portolan" }),
  };
}

function versus(what: string, figure: Figure, workload: string, server: string, limit: number): Target {
  return {
    about: `${what}, ${workload}, to ${server}`,
    limit,
    isLowest: false,
    unit: "×",
    reached: (results) => ratioOf(results, figure, { workload, server: "portolan" }, { workload, server }),
  };
}

function withOwnHits(about: string, workload: string, limit: number): Target {
  return {
    about: `${about}: CPU a query, to our own cached-1k`,
    limit,
    isLowest: false,
    unit: "×",
    reached: (results) =>
      ratioOf(
        results,
        cpuMicroseconds,
        { workload, server: "portolan" },
        { workload: "cached-1k", server: "portolan" },
      ),
  };
}
