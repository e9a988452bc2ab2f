/**
 * The CPU time of one server for loading a cluster and for each change, and the delay until its answers show a
 * change.
 */
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { CLUSTER_ZONE } from "../names.ts";
import { processIds, threadSeconds } from "../run/process-usage.ts";
import type { RunningServer } from "../run/running-server.ts";
import { APPEARING_SERVICE, WATCHED_SERVICE } from "./api-state.ts";
import type { BesideLoad, BesideSample } from "./beside-results.ts";
import type { LatencySample } from "./cluster-results.ts";
import { type ClusterSize, clusterAddress, podAddress } from "./cluster-shape.ts";
import { LiveServer, type LiveServerKind, startApi } from "./live-server.ts";
import { latencyOf, Upstream, watchInProcess } from "./measure-scenario.ts";
import { processMemory } from "./process-memory.ts";
import type { RunningApi } from "./running-api.ts";

export interface BesideOptions {
  readonly server: LiveServerKind;
  readonly size: ClusterSize;
  /** For everything that is needed meanwhile. */
  readonly folder: string;
  readonly ticksPerSecond: number;
  readonly durations: BesideDurations;
}

/** Seconds, but for the counts. */
export interface BesideDurations {
  /** From ready until the load is over, and from then until anything is measured. */
  readonly rest: number;
  readonly idle: number;
  /** How many changes come alone. */
  readonly cold: number;
  readonly steady: number;
  readonly quick: number;
  /** How many changes are looked for in answers, of either kind. */
  readonly seen: number;
}

/** Changes a second: alone, often, and in quick succession. */
const COLD_RATE = 0.8;
const STEADY_RATE = 200;
const QUICK_RATE = 1_500;
/** Milliseconds between two changes that are looked for in answers. */
const SEEN_EVERY = 100;
/** Services, EndpointSlices, namespaces. */
const KINDS = 3;

export async function measureBeside(options: BesideOptions): Promise<Omit<BesideSample, "round">> {
  const { server: kind, size, folder, ticksPerSecond, durations } = options;
  await using upstream = await Upstream.start();
  await using liveApi = await startApi(size, true);
  const { api } = liveApi;
  const live = await LiveServer.prepare(join(folder, `beside-${kind.name}`), liveApi, {
    ...{ upstreamPort: upstream.port, cache: false, pods: false, server: kind },
  });
  const listed = api.listed(KINDS);
  await using server = live.start();
  // What asks whether it is ready is not to be measured.
  await live.becomesReady(server, 100);
  await listed;
  await delay(durations.rest * 1000);
  // Threads of the start have ended.
  const loadSeconds = server.cpuSeconds(ticksPerSecond);
  const watched = (run: () => Promise<unknown>) => usage(server, run);
  const loads = [
    { rate: COLD_RATE, changes: durations.cold },
    { rate: STEADY_RATE, changes: STEADY_RATE * durations.steady },
    { rate: QUICK_RATE, changes: QUICK_RATE * durations.quick },
  ];
  const used: Usage[] = [];
  for (const load of loads) {
    used.push(
      await watched(async () => {
        await api.change({ ...load, together: 1, mixed: true });
        // Events still in transit.
        await delay(100);
      }),
    );
  }
  const sliceChanged = await measureSlices(api, server, durations.seen);
  const serviceNew = await measureServices(api, server, durations.seen);
  // At the end, because a process that has just started goes on with that for a while.
  await delay(durations.rest * 1000);
  const idle = await watched(() => delay(durations.idle * 1000));
  const idleShare = idle.cpu / idle.seconds;
  server.assertRunning();
  const { peak: peakMegabytes, resident: residentMegabytes } = memoryOf(server);
  return {
    server: kind.name,
    loadSeconds,
    idleShare,
    loads: loads.map((load, at) => perChange(load, used[at], idleShare)),
    sliceChanged,
    serviceNew,
    peakMegabytes,
    residentMegabytes,
  };
}

interface Usage {
  readonly seconds: number;
  readonly cpu: number;
}

async function usage(server: RunningServer, run: () => Promise<unknown>): Promise<Usage> {
  const begun = performance.now();
  const before = threadSeconds(server.pid);
  await run();
  const cpu = threadSeconds(server.pid) - before;
  return { seconds: (performance.now() - begun) / 1000, cpu };
}

function perChange(
  { rate, changes }: Pick<BesideLoad, "rate" | "changes">,
  { seconds, cpu }: Usage = { seconds: 0, cpu: 0 },
  idleShare: number,
): BesideLoad {
  const each = (time: number): number => (time / changes) * 1e6;
  return { rate, changes, microseconds: each(cpu - idleShare * seconds), allMicroseconds: each(cpu) };
}

async function measureSlices(api: RunningApi, server: RunningServer, times: number): Promise<LatencySample> {
  const rate = 1000 / SEEN_EVERY;
  const seconds = times / rate;
  const seen = watchFor(server, WATCHED_SERVICE, seconds);
  await delay(1000);
  const { moves } = await api.churn({ rate, seconds, watchedEvery: 1 });
  return latencyOf(moves, await seen, podAddress);
}

async function measureServices(
  api: RunningApi,
  server: RunningServer,
  times: number,
): Promise<LatencySample> {
  const seen = watchFor(server, APPEARING_SERVICE, (times * SEEN_EVERY) / 1000);
  await delay(1000);
  const { services } = await api.appear(times, SEEN_EVERY);
  return latencyOf(services, await seen, clusterAddress);
}

/** It is there before the first change and after the last. */
function watchFor(
  server: RunningServer,
  { name, namespace }: { readonly name: string; readonly namespace: string },
  seconds: number,
) {
  return watchInProcess({
    port: server.port,
    name: `${name}.${namespace}.svc.${CLUSTER_ZONE}.`,
    // The API waits a little longer than it says, each time.
    seconds: seconds * 1.2 + 2,
  });
}

/** Of the process that serves: one that started it and waits for its end does nothing. */
function memoryOf(server: RunningServer): { readonly peak: number; readonly resident: number } {
  const processes = processIds(server.pid).map((pid) => processMemory(pid));
  return {
    peak: Math.max(...processes.map(({ peak }) => peak)),
    resident: Math.max(...processes.map(({ resident }) => resident)),
  };
}
