/** One scenario: Portolan against the API of the benchmark, from its start to its end. */
import { fork } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { DurationLog } from "../load/duration-log.ts";
import { CLUSTER_ZONE } from "../names.ts";
import type { RunningServer } from "../run/running-server.ts";
import type { AnswerWatchOptions, FirstSeen } from "./answer-watch.ts";
import { WATCHED_SERVICE } from "./api-state.ts";
import type { ChurnSample, ClusterSample, LatencySample, RelistSample } from "./cluster-results.ts";
import { type ClusterSize, podAddress } from "./cluster-shape.ts";
import { LiveServer, startApi } from "./live-server.ts";
import { measureReload } from "./measure-reload.ts";
import { OtherProcesses } from "./other-processes.ts";
import { forgetPeak, OwnPeak, processMemory } from "./process-memory.ts";
import type { RunningApi } from "./running-api.ts";
import type { Scenario } from "./scenarios.ts";

export interface ScenarioOptions {
  readonly scenario: Scenario;
  readonly size: ClusterSize;
  /** For everything that is needed meanwhile. */
  readonly folder: string;
  readonly ticksPerSecond: number;
  readonly durations: ScenarioDurations;
}

/** Seconds. */
export interface ScenarioDurations {
  /** From the last list until memory is read. */
  readonly rest: number;
  readonly churn: number;
  readonly latency: number;
}

/** Events a second. */
const CHURN_RATE = 200;
/** Every n-th event moves the pod whose name is queried. */
const WATCHED_EVERY = 10;
export async function measureScenario(options: ScenarioOptions): Promise<ClusterSample> {
  const { scenario, size, folder, durations } = options;
  await using upstream = await Upstream.start();
  await using liveApi = await startApi(size, scenario.lists === "streamed");
  const { api } = liveApi;
  const live = await LiveServer.prepare(join(folder, scenario.name), liveApi, {
    ...scenario,
    upstreamPort: upstream.port,
  });
  const kinds = scenario.pods ? 4 : 3;
  const others = new OtherProcesses(options.ticksPerSecond);
  const listed = api.listed(kinds);
  const startedAt = performance.now();
  await using server = live.start();
  await live.becomesReady(server);
  const ready = performance.now() - startedAt;
  const first = await listed;
  others.look("start and first lists");
  await delay(durations.rest * 1000);
  const { resident: restMegabytes, own: restOwnMegabytes } = processMemory(server.pid);
  const relist = await measureRelist(api, server, kinds, durations.rest);
  others.look("rest and relist");
  const reload = await measureReload({
    server,
    corefile: live.corefile,
    name: `${WATCHED_SERVICE.name}.${WATCHED_SERVICE.namespace}.svc.${CLUSTER_ZONE}.`,
    rest: durations.rest,
  });
  others.look("reload");
  const churn = scenario.measuresChurn ? await measureChurn(api, server, options) : undefined;
  if (churn !== undefined) others.look("CPU an event");
  const latency = scenario.measuresLatency
    ? await measureLatency(api, server, durations.latency, others.doubts)
    : undefined;
  if (latency !== undefined) others.look("latency");
  server.assertRunning();
  return {
    scenario: scenario.name,
    about: scenario.about,
    ready,
    sync: first.ended - first.begun,
    listMegabytes: first.octets / 1e6,
    restMegabytes,
    restOwnMegabytes,
    relist,
    reload,
    latency,
    churn,
    doubts: others.doubts,
  };
}

async function measureRelist(
  api: RunningApi,
  server: RunningServer,
  kinds: number,
  rest: number,
): Promise<RelistSample> {
  using ownPeak = new OwnPeak(server.pid);
  forgetPeak(server.pid);
  const listed = api.listed(kinds);
  api.forget();
  const { begun, ended } = await listed;
  await delay(rest * 1000);
  const { resident, peak } = processMemory(server.pid);
  return {
    took: ended - begun,
    peakMegabytes: peak,
    ownPeakMegabytes: ownPeak.megabytes,
    afterMegabytes: resident,
  };
}

async function measureChurn(
  api: RunningApi,
  server: RunningServer,
  { ticksPerSecond, durations }: ScenarioOptions,
): Promise<ChurnSample> {
  const before = server.cpuSeconds(ticksPerSecond);
  const begun = performance.now();
  const { events } = await api.churn({ rate: CHURN_RATE, seconds: durations.churn, watchedEvery: 0 });
  const cpu = server.cpuSeconds(ticksPerSecond) - before;
  const seconds = (performance.now() - begun) / 1000;
  return { rate: CHURN_RATE, events, cpuMicroseconds: (cpu / events) * 1e6, cpuShare: cpu / seconds };
}

async function measureLatency(
  api: RunningApi,
  server: RunningServer,
  seconds: number,
  doubts: string[],
): Promise<LatencySample> {
  const { name, namespace } = WATCHED_SERVICE;
  const seen = watchInProcess({
    port: server.port,
    name: `${name}.${namespace}.svc.${CLUSTER_ZONE}.`,
    // It is there before the first event and after the last.
    seconds: seconds + 2,
  });
  await delay(1000);
  const { moves, collections } = await api.churn({ rate: CHURN_RATE, seconds, watchedEvery: WATCHED_EVERY });
  if (collections > 0) doubts.push(`latency: the API collected its garbage ${collections} times meanwhile`);
  return latencyOf(moves, await seen);
}

/** Matches new pods, or whatever else a number stands for, with the first answers that have their addresses. */
export function latencyOf(
  moves: readonly (readonly [pod: number, sentAt: number])[],
  firstSeen: FirstSeen,
  addressOf: (pod: number) => string = podAddress,
): LatencySample {
  const seenAt = new Map(firstSeen);
  const log = new DurationLog(moves.length);
  let missed = 0;
  for (const [pod, sentAt] of moves) {
    const seen = seenAt.get(addressNumber(addressOf(pod)));
    if (seen === undefined) missed++;
    else log.add(seen - sentAt);
  }
  return { latency: log.percentiles(), events: moves.length, missed };
}

function addressNumber(address: string): number {
  return address.split(".").reduce((number, octet) => number * 256 + Number(octet), 0);
}

const watcher = fileURLToPath(new URL("answer-watch-process.ts", import.meta.url));

export async function watchInProcess(options: AnswerWatchOptions): Promise<FirstSeen> {
  const child = fork(watcher, [JSON.stringify(options)], { stdio: "inherit" });
  const gone = once(child, "exit").then(() => {
    throw new Error("the watcher of answers ended early");
  });
  const [seen] = await Promise.race([once(child, "message"), gone]);
  return seen as FirstSeen;
}

/** Denies every name: nothing of what is measured here goes beyond the cluster. */
export class Upstream implements AsyncDisposable {
  readonly #socket = createSocket("udp4");

  static async start(): Promise<Upstream> {
    const upstream = new Upstream();
    const socket = upstream.#socket;
    socket.on("message", (query, { port, address }) => {
      query[2] = 0x80 | (query[2] ?? 0);
      query[3] = 0x83;
      socket.send(query, port, address);
    });
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    return upstream;
  }

  get port(): number {
    return this.#socket.address().port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
  }
}
