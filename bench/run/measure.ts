/** One server under one workload: started, checked, filled, warmed up, measured, stopped. */
import type { LoadCounts } from "../load/load-result.ts";
import type { QueryFiles } from "../material.ts";
import type { OpenLoopSample, Sample } from "../results.ts";
import type { Deployment, ServerKind } from "../servers/server.ts";
import type { Workload } from "../workloads.ts";
import { checkAnswers } from "./check-answers.ts";
import { doubtsAboutLoad, doubtsAboutTiming, type WatchedLoad } from "./doubts.ts";
import { type Load, runCapacityLoad, runFill, runOpenLoop } from "./load.ts";
import { machineCpuSeconds, ownCpuSeconds } from "./process-usage.ts";
import { RunningServer } from "./running-server.ts";

export interface MeasureOptions {
  readonly round: number;
  readonly kind: ServerKind;
  readonly workload: Workload;
  readonly deployment: Deployment;
  readonly queries: QueryFiles;
  readonly upstream: RunningServer;
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly ticksPerSecond: number;
}

/** @throws WrongAnswer; Error where the server cannot be measured */
export async function measure(options: MeasureOptions): Promise<Sample> {
  const { round, kind, workload, deployment, queries, seconds, warmUpSeconds } = options;
  const { port } = deployment;
  const loadPort = deployment.encrypted?.port ?? port;
  const authority = deployment.encrypted?.authority;
  await using server = RunningServer.start(kind, deployment);
  await checkAnswers(server, workload);
  await runFill(port, queries.fill);
  await runCapacityLoad(workload.load, loadPort, queries["warm-up"], warmUpSeconds, authority);

  const capacity = await watch(options, server, () =>
    runCapacityLoad(workload.load, loadPort, queries.capacity, seconds, authority),
  );
  const { result } = capacity;
  const queriesPerSecond = result.answered / result.seconds;
  const rate = Math.max(1, Math.round(queriesPerSecond / 2));
  const openLoop = await watch(options, server, () =>
    runOpenLoop(workload, loadPort, queries["open-loop"], seconds, rate, authority),
  );
  server.assertRunning();
  const openLoopSample: OpenLoopSample = {
    rate,
    latency: openLoop.result.latency,
    sendDelay: openLoop.result.sendDelay,
    cpuMicroseconds: openLoop.cpuMicroseconds,
    sent: openLoop.result.sent,
    lost: openLoop.result.lost,
  };
  return {
    round,
    workload: workload.name,
    server: kind.name,
    queriesPerSecond,
    cpuMicroseconds: capacity.cpuMicroseconds,
    cpuShare: capacity.cpuShare,
    sent: result.sent,
    lost: result.lost,
    residentMegabytes: server.residentMegabytes,
    openLoop: openLoopSample,
    doubts: [
      ...doubtsAboutLoad(workload, queries.capacity, capacity),
      ...doubtsAboutLoad(workload, queries["open-loop"], openLoop).map((doubt) => `at half rate ${doubt}`),
      ...doubtsAboutTiming(openLoopSample),
    ],
  };
}

/** Runs a load, and sees what the server and everything else use meanwhile. */
async function watch<T extends LoadCounts>(
  { upstream, ticksPerSecond }: MeasureOptions,
  server: RunningServer,
  run: () => Promise<Load<T>>,
): Promise<WatchedLoad<T>> {
  const now = () => ({
    time: performance.now() / 1000,
    server: server.cpuSeconds(ticksPerSecond),
    known: ownCpuSeconds(ticksPerSecond) + upstream.cpuSeconds(ticksPerSecond),
    machine: machineCpuSeconds(ticksPerSecond),
  });
  const before = now();
  const { result, answered } = await run();
  const after = now();
  const passed = after.time - before.time;
  const used = after.server - before.server;
  const others = after.machine - before.machine - used - (after.known - before.known);
  return {
    result,
    cpuMicroseconds: (used / answered) * 1e6,
    cpuShare: used / passed,
    othersShare: others / passed,
  };
}
